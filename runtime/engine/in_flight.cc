#include "runtime/engine/in_flight.hpp"

#include <algorithm>
#include <utility>

namespace runjob::runtime {

bool InFlight::has_device_operation() const {
  return std::any_of(entries_.begin(), entries_.end(), [](const auto& each) { return each.second.is_on_device(); });
}

std::shared_ptr<Completion> InFlight::insert(Submission submission) {
  auto completion = std::make_shared<Completion>();
  std::string name = submission.name;
  entries_.emplace(std::move(name), Entry{std::move(submission), completion, false, ++count_, {}});
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

std::optional<InFlight::Entry> InFlight::take(const std::string& name) {
  const auto found = entries_.find(name);
  if (found == entries_.end()) return std::nullopt;
  set_done(found->second);
  std::optional<Entry> entry = std::move(found->second);
  entries_.erase(found);
  return entry;
}

std::vector<InFlight::Entry> InFlight::take_waiting() {
  std::vector<Entry> waiting;
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    if (entry->second.running) {
      ++entry;
    } else {
      waiting.push_back(std::move(entry->second));
      entry = entries_.erase(entry);
    }
  }
  return waiting;
}

std::vector<InFlight::Entry> InFlight::take_all() {
  std::vector<Entry> all;
  for (auto& [name, entry] : std::exchange(entries_, {})) all.push_back(std::move(entry));
  running_ = 0;
  return all;
}

std::vector<std::shared_ptr<Completion>> InFlight::completions() const {
  std::vector<std::shared_ptr<Completion>> found;
  for (const auto& [name, entry] : entries_) found.push_back(entry.completion);
  return found;
}

std::vector<WaitingOperation> InFlight::waiting() const {
  std::vector<WaitingOperation> result;
  for (const auto& [name, entry] : entries_) {
    if (!entry.running) result.push_back({entry.serial, name, entry.submission.signature.kind, {}});
  }
  return result;
}

}  // namespace runjob::runtime
