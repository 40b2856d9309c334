#include "runtime/engine/wakeable_poll.hpp"

#include <algorithm>

namespace runjob::runtime {
namespace {

int poll_timeout(WakeablePoll::Deadlines deadlines) {
  std::optional<WakeablePoll::Clock::time_point> deadline;
  for (const auto& each : deadlines) {
    if (each) deadline = std::min(*each, deadline.value_or(*each));
  }
  if (!deadline) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*deadline - WakeablePoll::Clock::now());
  return left.count() > 0 ? static_cast<int>(left.count()) : 0;
}

}  // namespace

void WakeablePoll::wait(std::vector<pollfd>& descriptors, Deadlines deadlines) {
  descriptors.push_back({wake_.get(), POLLIN, 0});
  if (::poll(descriptors.data(), descriptors.size(), poll_timeout(deadlines)) < 0) {
    for (pollfd& descriptor : descriptors) descriptor.revents = 0;  // interrupted by a signal
  }
  if ((descriptors.back().revents & POLLIN) != 0) wake_.clear();
  descriptors.pop_back();
}

void WakeablePoll::wake() {
  wake_.set();
}

}  // namespace runjob::runtime
