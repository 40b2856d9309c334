#pragma once

#include <memory>
#include <utility>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>

namespace runjob {

/// How many connections may be in the making at once: a counting semaphore for coroutines.
/// Owner    its permits, and those who wait for one, share the count with it and may outlive it: a job's loop destroys
///          the coroutines that are left when the job ends.
/// Threads  the loop's.
class HandshakeLimit {
  struct Places {
    /// Wakes the one that has waited longest, if there is a place for it.
    void pass_on() {
      if (free > 0) given_back.cancel_one();
    }

    int free;
    boost::asio::steady_timer given_back;  // never expires
  };

 public:
  HandshakeLimit(const boost::asio::any_io_executor& executor, int most)
      : places_(new Places{most, {executor, boost::asio::steady_timer::time_point::max()}}) {}

  /// One place, given back at its end.
  class Permit {
   public:
    explicit Permit(std::shared_ptr<Places> places) : places_(std::move(places)) { --places_->free; }
    Permit(Permit&&) noexcept = default;
    Permit& operator=(Permit&&) = delete;
    ~Permit() {
      if (places_ == nullptr) return;
      ++places_->free;
      places_->pass_on();
    }

   private:
    std::shared_ptr<Places> places_;
  };

  /// Waits for a place.
  boost::asio::awaitable<Permit> acquire();

 private:
  std::shared_ptr<Places> places_;
};

}  // namespace runjob
