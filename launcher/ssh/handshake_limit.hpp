#pragma once

#include <utility>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>

namespace runjob {

/// How many connections may be in the making at once: a counting semaphore for coroutines.
/// Threads  the loop's. Outlives its permits and those who wait for one.
class HandshakeLimit {
 public:
  HandshakeLimit(const boost::asio::any_io_executor& executor, int most)
      : free_(most), given_back_(executor, boost::asio::steady_timer::time_point::max()) {}

  /// One place, given back at its end.
  class Permit {
   public:
    explicit Permit(HandshakeLimit& limit) : limit_(&limit) { --limit.free_; }
    Permit(Permit&& other) noexcept : limit_(std::exchange(other.limit_, nullptr)) {}
    Permit& operator=(Permit&&) = delete;
    ~Permit() {
      if (limit_ == nullptr) return;
      ++limit_->free_;
      limit_->pass_on();
    }

   private:
    HandshakeLimit* limit_;
  };

  /// Waits for a place.
  boost::asio::awaitable<Permit> acquire();

 private:
  /// Wakes the one that has waited longest, if there is a place for it.
  void pass_on() {
    if (free_ > 0) given_back_.cancel_one();
  }

  int free_;
  boost::asio::steady_timer given_back_;  // never expires
};

}  // namespace runjob
