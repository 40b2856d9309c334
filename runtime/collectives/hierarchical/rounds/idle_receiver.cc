#include "runtime/collectives/hierarchical/rounds/idle_receiver.hpp"

#include <algorithm>
#include <pthread.h>
#include <sys/epoll.h>

#include "runtime/collectives/hierarchical/rounds/epoll.hpp"

namespace runjob::runtime {
namespace {

/// The time after which a descriptor counts as unused. It doubles while the driver stays inside, which may sleep there.
constexpr int kLeastMilliseconds = 1, kMostMilliseconds = 64;

}  // namespace

IdleReceiver::IdleReceiver(int descriptor, std::function<void()> receive)
    : descriptor_(descriptor), receive_(std::move(receive)), poll_(epoll_of_inputs({descriptor, wake_.get()})) {
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
