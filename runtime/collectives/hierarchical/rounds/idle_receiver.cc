#include "runtime/collectives/hierarchical/rounds/idle_receiver.hpp"

#include <algorithm>
#include <cerrno>
#include <pthread.h>
#include <sys/epoll.h>

#include "base/error.hpp"

namespace runjob::runtime {
namespace {

/// The time after which a descriptor counts as unused. It doubles while the driver stays inside, which may sleep there.
constexpr int kLeastMilliseconds = 1, kMostMilliseconds = 64;

void add(const UniqueFd& poll, int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  if (::epoll_ctl(poll.get(), EPOLL_CTL_ADD, fd, &event) != 0) throw system_error("epoll_ctl", errno);
}

}  // namespace

IdleReceiver::IdleReceiver(int descriptor, std::function<void()> receive)
    : descriptor_(descriptor), receive_(std::move(receive)), poll_(::epoll_create1(EPOLL_CLOEXEC)) {
  if (!poll_) throw system_error("epoll_create1", errno);
  add(poll_, descriptor);
  add(poll_, wake_.get());
  thread_ = std::thread([this] { run(); });
}

IdleReceiver::~IdleReceiver() {
  stop_ = true;
  wake_.set();
  thread_.join();
}

void IdleReceiver::expect_absence() {
  is_absent_ = true;
  if (!watches_) wake_.set();
}

void IdleReceiver::run() {
  ::pthread_setname_np(::pthread_self(), "runjob-rounds");
  int milliseconds = kLeastMilliseconds;
  for (;;) {
    epoll_event events[2];
    const int count = ::epoll_wait(poll_.get(), events, 2, watches_ ? -1 : milliseconds);
    if (stop_) return;
    for (int i = 0; i < count; ++i) {
      if (events[i].data.fd == wake_.get()) wake_.clear();
    }
    milliseconds = is_driver_inside() ? std::min(2 * milliseconds, kMostMilliseconds) : kLeastMilliseconds;
    if (is_in_use()) {
      watch(false);
      if (!is_absent_) continue;  // otherwise expect_absence() may have come too early to wake the thread
    }
    watch(true);
    receive_();
  }
}

/// True when the driver is inside, or was since the last call.
bool IdleReceiver::is_in_use() {
  const std::uint64_t uses = uses_;
  const bool is_used = uses != seen_uses_ || (uses & 1) != 0;
  seen_uses_ = uses;
  return is_used && !is_absent_;
}

void IdleReceiver::watch(bool watches) {
  if (watches_ == watches) return;
  watches_ = watches;
  epoll_event event{};
  if (watches) event.events = EPOLLIN;
  event.data.fd = descriptor_;
  static_cast<void>(::epoll_ctl(poll_.get(), EPOLL_CTL_MOD, descriptor_, &event));
}

}  // namespace runjob::runtime
