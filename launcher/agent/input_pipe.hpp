#pragma once

#include <deque>
#include <string>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/unique_handle.hpp"
#include "launcher/channel/frame_writer.hpp"

namespace runjob {

/// A rank's standard input: writes the bytes of kInput frames into its pipe and gives the launcher credit for those
/// that the rank has taken. When the rank has closed its end, the rest is thrown away and still credited.
/// Owner    the owner spawns run() and keeps this object until run() has returned.
/// Threads  the loop's one thread.
class InputPipe {
 public:
  InputPipe(boost::asio::any_io_executor executor, UniqueFd writer, int rank, FrameWriter<ToLauncher>& frames);

  /// Returns after the end of the input, or close().
  boost::asio::awaitable<void> run();

  /// Queues bytes. An empty string ends the input.
  void push(std::string bytes);
  void close();

 private:
  boost::asio::posix::stream_descriptor pipe_;
  boost::asio::steady_timer wake_up_;  // never expires; cancelled when there is something to do
  std::deque<std::string> queue_;
  int rank_;
  FrameWriter<ToLauncher>& frames_;
  bool broken_ = false;
  bool closed_ = false;
};

}  // namespace runjob
