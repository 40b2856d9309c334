#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/unique_handle.hpp"
#include "launcher/channel/frame_writer.hpp"

namespace runjob {

/// The standard input of a process of the job: writes the bytes of kInput frames into its pipe and gives the launcher
/// credit for those that the process has taken. When it has closed its end, the rest is thrown away and still credited.
/// Owner    the owner spawns run() and keeps this object until run() has returned.
/// Threads  the loop's one thread.
class InputPipe {
 public:
  InputPipe(boost::asio::any_io_executor executor, UniqueFd writer, int process, FrameWriter<ToLauncher>& frames);

  /// Returns after the end of the input, or close().
  boost::asio::awaitable<void> run();

  /// Queues bytes. An empty string ends the input.
  void push(std::string bytes);
  void close();
  /// How many bytes the process, or one that it has started, has read so far. Call it before close(). Where /proc
  /// cannot be read, all that were written count as read once the input has ended.
  std::int64_t bytes_read();

 private:
  void keep_reader();

  boost::asio::posix::stream_descriptor pipe_;
  boost::asio::steady_timer wake_up_;  // never expires; cancelled when there is something to do
  std::deque<std::string> queue_;
  int process_;
  FrameWriter<ToLauncher>& frames_;
  std::int64_t written_ = 0;
  UniqueFd reader_;  // a reading end, from the end of the input on
  bool broken_ = false;
  bool closed_ = false;
};

}  // namespace runjob
