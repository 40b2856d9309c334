#include "runtime/collectives/nccl/launch_order.hpp"

#include <algorithm>
#include <chrono>
#include <tuple>

namespace runjob::runtime::nccl {

LaunchOrder::Turn::Turn(LaunchOrder& order, const std::vector<int>& ranks) : order_(order) {
  const MutexLock lock(order_.mutex_);
  proposal_ = ++order_.now_;
  number_ = ++order_.count_;
  order_.waiting_.emplace(number_, Waiting{proposal_, ranks});
}

LaunchOrder::Turn::~Turn() {
  const MutexLock lock(order_.mutex_);
  order_.waiting_.erase(number_);
  order_.changed_.notify_all();
}

bool LaunchOrder::Turn::wait(Time agreed, const std::function<bool()>& is_given_up) {
  constexpr std::chrono::milliseconds kLook{10};
  {
    const MutexLock lock(order_.mutex_);
    order_.now_ = std::max(order_.now_, agreed);
    order_.waiting_.at(number_).time = agreed;
    order_.changed_.notify_all();
  }
  for (;;) {
    {
      const MutexLock lock(order_.mutex_);
      if (order_.is_first(number_)) return true;
      order_.changed_.wait_until(order_.mutex_, std::chrono::steady_clock::now() + kLook);
      if (order_.is_first(number_)) return true;
    }
    if (is_given_up()) return false;
  }
}

/// An operation without a time that is agreed on may still get a later one than its proposal, but no earlier one.
bool LaunchOrder::is_first(std::uint64_t number) const {
  const Waiting& own = waiting_.at(number);
  return std::none_of(waiting_.begin(), waiting_.end(), [&](const auto& each) {
    return each.first != number && std::tie(each.second.time, each.second.ranks) < std::tie(own.time, own.ranks);
  });
}

}  // namespace runjob::runtime::nccl
