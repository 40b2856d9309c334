#pragma once

#include <chrono>
#include <functional>
#include <string>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>

#include "launcher/output/status_line.hpp"

namespace runjob {

/// Shows the StatusLine of a job that takes long to start: nothing for the first second of each phase, then the line
/// with the time that has passed.
/// Threads  the loop's one thread.
class StartStatus {
 public:
  /// Gets the line to show, "" for none, and `what`, the same without the time. Called from the loop.
  using Show = std::function<void(const std::string& line, const std::string& what)>;

  StartStatus(boost::asio::any_io_executor executor, const Allocation& allocation, Show show);

  void start();
  /// Call it after an event was reported to line().
  void update();
  /// Shows nothing from now on.
  void stop();

  StatusLine& line() { return line_; }

 private:
  void watch();
  void on_tick();

  Show show_;
  StatusLine line_;
  boost::asio::steady_timer timer_;
  std::chrono::steady_clock::time_point waiting_since_;
  bool watching_ = false;
  bool shown_ = false;
  bool stopped_ = false;
};

}  // namespace runjob
