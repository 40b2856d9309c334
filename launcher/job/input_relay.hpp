#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

namespace runjob {

/// Relays the launcher's standard input to one rank, as far as the rank's agent has given credit. A terminal is not
/// read while this process is in its background: the kernel would stop the process (SIGTTIN).
/// Owner    the job. Outlives the loop's run.
/// Threads  the loop's one thread.
class InputRelay {
 public:
  /// Takes the bytes; an empty string ends the input. Called from the loop.
  using Send = std::function<void(std::string bytes)>;

  /// `descriptor` is lent. Its flags stay as they are, because it may be shared with the user's shell. `window`: bytes
  /// that may be under way to the rank.
  InputRelay(boost::asio::any_io_executor executor, int descriptor, std::int64_t window, Send send);
  ~InputRelay();

  void start();
  /// The agent has passed on that many bytes. Errors  Error(kProtocol) for more than it has been sent.
  void add_credit(std::int64_t bytes);
  void stop();
  /// How many bytes have been read for the rank.
  std::int64_t taken() const { return taken_; }

 private:
  void wait_for_input();
  void read_now();

  boost::asio::posix::stream_descriptor input_;
  boost::asio::steady_timer timer_;
  const std::int64_t window_;
  std::int64_t credit_;
  std::int64_t taken_ = 0;
  Send send_;
  bool waiting_ = false;
  bool ended_ = false;
};

}  // namespace runjob
