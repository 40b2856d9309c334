#include "runtime/collectives/cuda/flight_record.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

namespace runjob::runtime::cuda {
namespace {

constexpr const char* kNames[] = {"submitted", "agreed", "launched", "begun", "done"};

const char* reason(FlightRecord::Step step) {
  switch (step) {
    case FlightRecord::Step::kSubmitted:
      return "other ranks have not submitted it";
    case FlightRecord::Step::kAgreed:
      return "it has not been launched";
    case FlightRecord::Step::kLaunched:
      return "the caller's stream is still busy with its input";
    case FlightRecord::Step::kBegun:
      return "the GPU is still busy with it";
    case FlightRecord::Step::kDone:
      return "it is done";
  }
  return "";
}

}  // namespace

std::uint64_t FlightRecord::add(std::string_view name, Kind kind, int process_set) {
  const MutexLock lock(mutex_);
  Entry& entry = entries_[++count_ % kKept];
  entry.number = count_;
  entry.kind = kind;
  entry.process_set = process_set;
  entry.step = Step::kSubmitted;
  entry.name_bytes = std::min(name.size(), kMostName);
  std::memcpy(entry.name.data(), name.data(), entry.name_bytes);
  entry.times.fill(Clock::now());
  return count_;
}

void FlightRecord::reach(std::uint64_t number, Step step) {
  if (number == 0) return;
  const MutexLock lock(mutex_);
  Entry& entry = entries_[number % kKept];
  if (entry.number != number || entry.step >= step) return;
  const auto first = static_cast<std::ptrdiff_t>(entry.step) + 1;
  std::fill(entry.times.begin() + first, entry.times.end(), Clock::now());
  entry.step = step;
}

FlightRecord::Unfinished FlightRecord::first_unfinished() const {
  const MutexLock lock(mutex_);
  const Entry* const entry = first();
  if (entry == nullptr) return {};
  return {entry->step, Clock::now() - entry->times[static_cast<std::size_t>(entry->step)]};
}

std::string FlightRecord::first_unfinished_text() const {
  const MutexLock lock(mutex_);
  const Entry* const entry = first();
  return entry == nullptr ? std::string() : describe(*entry, Clock::now());
}

/// The first one that is not done; null for none.
const FlightRecord::Entry* FlightRecord::first() const {
  for (std::uint64_t number = count_ < kKept ? 1 : count_ - kKept + 1; number <= count_; ++number) {
    const Entry& entry = entries_[number % kKept];
    if (entry.step != Step::kDone) return &entry;
  }
  return nullptr;
}

/// "allreduce 'x', operation 7 of 9: submitted 3.21 s ago, agreed 3.2 s ago; it has not been launched"
std::string FlightRecord::describe(const Entry& entry, Clock::time_point now) const {
  std::string text =
      fmt::format("{}, operation {} of {}:",
                  operation_text(std::string_view(entry.name.data(), entry.name_bytes), entry.kind, entry.process_set),
                  entry.number, count_);
  for (std::size_t step = 0; step <= static_cast<std::size_t>(entry.step); ++step) {
    const std::chrono::duration<double> ago = now - entry.times[step];
    text += fmt::format("{} {} {:.3g} s ago", step == 0 ? "" : ",", kNames[step], ago.count());
  }
  return text + "; " + reason(entry.step);
}

}  // namespace runjob::runtime::cuda
