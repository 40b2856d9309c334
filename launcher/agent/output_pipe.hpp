#pragma once

#include <cstdint>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/unique_handle.hpp"
#include "launcher/frame_writer.hpp"

namespace runjob {

/// One output stream of one rank: reads its pipe and sends the bytes as kOutput frames, as far as the
/// launcher's credit and the writer's queue allow; the rest waits in the pipe, which is what slows the rank
/// down. Threads  the loop's one thread. The owner spawns run() and keeps this object until it has returned.
class OutputPipe {
 public:
  /// `reader`: the read end, becomes non-blocking. `credit`: bytes that may be sent at first. `writer`
  /// outlives this.
  OutputPipe(boost::asio::any_io_executor executor, UniqueFd reader, int rank, Stream stream, std::int64_t credit,
             FrameWriter& writer);

  /// Returns at the end of the stream, after having sent an empty frame.
  boost::asio::awaitable<void> run();

  void add_credit(std::int64_t bytes);

  /// To be called when the writer's queue has become shorter.
  void on_queue_shorter();

  /// From now on reads and throws away: there is nobody to send to, and the rank must not break on a closed
  /// pipe.
  void discard();

  /// Whether it has sent all there was and waits for more, which only comes if somebody still holds the write
  /// end.
  bool idle() const { return reading_; }

  /// Ends run() although somebody may still hold the write end; what is in the pipe is lost.
  void close();

 private:
  boost::asio::awaitable<void> wait_until_allowed();
  bool allowed() const;

  boost::asio::posix::stream_descriptor pipe_;
  boost::asio::steady_timer wake_up_;  // never expires: cancelled when it may be allowed to go on
  FrameHeader header_;
  std::int64_t credit_;
  FrameWriter& writer_;
  bool reading_ = false;
  bool discarding_ = false;
  bool closed_ = false;
};

}  // namespace runjob
