#include "runtime/engine/wakeable_poll.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/error.hpp"

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

WakeablePoll::WakeablePoll() : wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!wake_) throw system_error("eventfd", errno);
}

void WakeablePoll::wait(std::vector<pollfd>& descriptors, Deadlines deadlines) {
  descriptors.push_back({wake_.get(), POLLIN, 0});
  if (::poll(descriptors.data(), descriptors.size(), poll_timeout(deadlines)) < 0) {
    for (pollfd& descriptor : descriptors) descriptor.revents = 0;  // interrupted by a signal
  }
  std::uint64_t count = 0;
  if ((descriptors.back().revents & POLLIN) != 0) {
    static_cast<void>(!::read(wake_.get(), &count, sizeof count));  // only empties it
  }
  descriptors.pop_back();
}

void WakeablePoll::wake() {
  const std::uint64_t one = 1;
  static_cast<void>(!::write(wake_.get(), &one, sizeof one));  // full means awake
}

}  // namespace runjob::runtime
