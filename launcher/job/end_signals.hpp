#pragma once

#include <functional>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/signal_set.hpp>

namespace runjob {

/// The signals that end a job: SIGINT, SIGTERM, and SIGHUP unless it was ignored when this process was started (nohup).
/// Threads  the loop's one thread; one object at a time.
class EndSignals {
 public:
  /// Called from the loop. `again` is true from the second SIGINT on: the user insists.
  using OnSignal = std::function<void(int number, bool again)>;

  EndSignals(boost::asio::any_io_executor executor, OnSignal on_signal);

  void start();
  /// True after a SIGINT.
  bool interrupted() const { return interrupts_ > 0; }

 private:
  boost::asio::signal_set signals_;
  OnSignal on_signal_;
  int interrupts_ = 0;
};

}  // namespace runjob
