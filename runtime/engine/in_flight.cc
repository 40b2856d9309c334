#include "runtime/engine/in_flight.hpp"

#include <algorithm>
#include <utility>

namespace runjob::runtime {

bool InFlight::has_device_operation() const {
  return std::any_of(entries_.begin(), entries_.end(), [](const auto& each) { return each.second.is_on_device(); });
}

std::shared_ptr<Completion> InFlight::insert(Submission&& submission) {
  auto completion = std::make_shared<Completion>();
  Entry& entry = entries_[submission.name];
  entry.submission = std::move(submission);
  entry.completion = completion;
  entry.serial = ++count_;
  return completion;
}

InFlight::Entry* InFlight::find(const std::string& name) {
  const auto found = entries_.find(name);
  return found == entries_.end() ? nullptr : &found->second;
}

void InFlight::set_running(Entry& entry) {
  if (!std::exchange(entry.running, true)) ++running_;
}

void InFlight::set_done(Entry& entry) {
  if (std::exchange(entry.running, false)) --running_;
}

InFlight::Taken InFlight::take(const std::string& name) {
  const auto found = entries_.find(name);
  if (found == entries_.end()) return {};
  set_done(found->second);
  return entries_.extract(found);
}

std::vector<InFlight::Taken> InFlight::take_if(const std::function<bool(const Entry&)>& is_wanted) {
  std::vector<Taken> taken;
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    const auto each = entry++;
    if (is_wanted(each->second)) taken.push_back(entries_.extract(each));
  }
  return taken;
}

std::vector<InFlight::Taken> InFlight::take_waiting() {
  return take_if([](const Entry& entry) { return !entry.running && !entry.is_lent; });
}

std::vector<InFlight::Taken> InFlight::take_waiting_of(int process_set) {
  return take_if([&](const Entry& entry) {
    return !entry.running && !entry.is_lent && entry.submission.signature.process_set == process_set;
  });
}

std::vector<InFlight::Taken> InFlight::take_all() {
  std::vector<Taken> all;
  while (!entries_.empty()) all.push_back(entries_.extract(entries_.begin()));
  running_ = 0;
  return all;
}

std::vector<std::shared_ptr<Completion>> InFlight::completions() const {
  std::vector<std::shared_ptr<Completion>> found;
  for (const auto& [name, entry] : entries_) found.push_back(entry.completion);
  return found;
}

std::vector<std::shared_ptr<Completion>> InFlight::completions_of(int process_set) const {
  std::vector<std::shared_ptr<Completion>> found;
  for (const auto& [name, entry] : entries_) {
    if (entry.submission.signature.process_set == process_set) found.push_back(entry.completion);
  }
  return found;
}

const Submission* InFlight::find(const Completion& completion) const {
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const auto& each) { return each.second.completion.get() == &completion; });
  return found == entries_.end() ? nullptr : &found->second.submission;
}

bool InFlight::runs_other_than(int process_set) const {
  return std::any_of(entries_.begin(), entries_.end(), [&](const auto& each) {
    return each.second.running && each.second.submission.signature.process_set != process_set;
  });
}

std::vector<WaitingOperation> InFlight::waiting() const {
  std::vector<WaitingOperation> result;
  for (const auto& [name, entry] : entries_) {
    if (!entry.running) result.push_back({entry.serial, name, entry.submission.signature.kind, {}});
  }
  return result;
}

}  // namespace runjob::runtime
