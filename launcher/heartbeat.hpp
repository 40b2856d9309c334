#pragma once

#include <chrono>
#include <functional>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>

namespace runjob {

/// One side's part in noticing that the other one, or the network between, is gone: a cut cable ends no connection.
/// Both sides beat every second; whoever has received nothing for five seconds gives the other up. The launcher begins, on
/// channels that a network carries, and the agent answers in kind. Threads  the loop's one thread.
class Heartbeat {
 public:
  using Callback = std::function<void()>;

  static constexpr std::chrono::seconds kInterval{1};
  static constexpr int kMostMisses = 5;

  /// `beat` is to send a kHeartbeat frame; `lost` is called once, when the other side has been silent for too long.
  Heartbeat(boost::asio::any_io_executor executor, Callback beat, Callback lost,
            std::chrono::milliseconds interval = kInterval);

  /// Begins, or goes on after pause(). Does nothing while it beats already.
  void start();

  /// Nothing is sent or expected until start().
  void pause();

  /// To be called whenever anything has been received.
  void on_sign_of_life() { misses_ = 0; }

 private:
  void wait();

  boost::asio::steady_timer timer_;
  Callback beat_;
  Callback lost_;
  std::chrono::milliseconds interval_;
  int misses_ = 0;  // intervals without a sign of life
  bool running_ = false;
};

}  // namespace runjob
