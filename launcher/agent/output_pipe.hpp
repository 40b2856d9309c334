#pragma once

#include <cstdint>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/unique_handle.hpp"
#include "launcher/channel/frame_writer.hpp"

namespace runjob {

/// One output stream of one process of the job: reads its pipe and sends the bytes as kOutput frames, as far as the
/// launcher's credit and the writer's queue allow. The rest waits in the pipe, which slows the process down.
/// Owner    the owner spawns run() and keeps this object until run() has returned.
/// Threads  the loop's one thread.
class OutputPipe {
 public:
  /// `reader`: the read end, which becomes non-blocking. `credit`: the bytes that may be sent at first. `writer`
  /// outlives this object.
  OutputPipe(boost::asio::any_io_executor executor, UniqueFd reader, int process, Stream stream, std::int64_t credit,
             FrameWriter<ToLauncher>& writer);

  /// Returns at the end of the stream, after having sent an empty frame.
  boost::asio::awaitable<void> run();

  void add_credit(std::int64_t bytes);

  /// Call it when the writer's queue has become shorter.
  void on_queue_shorter();

  /// From now on the bytes are read and thrown away: the launcher is gone, and the rank must not fail on a closed pipe.
  void discard();

  /// True while it waits for more bytes, having sent all others. Only a process that holds the write end can write
  /// more.
  bool idle();

  /// Ends run() even if a process still holds the write end. The bytes in the pipe are lost.
  void close();

 private:
  boost::asio::awaitable<void> wait_until_allowed();
  bool allowed() const;

  boost::asio::posix::stream_descriptor pipe_;
  boost::asio::steady_timer wake_up_;  // never expires; cancelled when allowed() may have become true
  FrameHeader<ToLauncher> header_;
  std::int64_t credit_;
  FrameWriter<ToLauncher>& writer_;
  bool reading_ = false;
  bool discarding_ = false;
  bool closed_ = false;
};

}  // namespace runjob
