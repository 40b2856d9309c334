#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>

#include "launcher/channel.hpp"
#include "launcher/frame.hpp"

namespace runjob {

/// Sends frames over a channel, control frames always before queued bulk data.
/// Threads  the loop's one thread. The owner spawns run() and keeps this object until run() has returned.
class FrameWriter {
 public:
  explicit FrameWriter(boost::asio::any_io_executor executor);

  /// Queues a control frame; `payload` is a CBOR document or empty.
  void send_control(FrameType type, int rank, std::string payload) {
    send_control(type, rank, Stream::kNone, std::move(payload));
  }
  void send_control(FrameType type, int rank, Stream stream, std::string payload);

  /// Queues a frame of bulk data, in order among its kind; control frames overtake it.
  void send_bulk(FrameHeader header, std::unique_ptr<char[]> data, std::size_t size);

  /// Bytes of bulk data not yet handed to the channel.
  std::size_t queued_bulk_bytes() const { return queued_bulk_bytes_; }

  /// Sends the magic over `channel`, then whatever is queued, also before, until finish() and both queues are empty.
  /// Throws what the channel throws. `channel` must live until then.
  boost::asio::awaitable<void> run(Channel& channel);

  /// Lets run() return once everything queued has been sent.
  void finish();

  /// Calls `done` from run() once nothing is left to hand to the channel; never if the channel breaks before.
  void when_idle(std::function<void()> done);

  /// Called by run() whenever bulk data has left; lent, may be empty.
  std::function<void()> on_bulk_sent;

 private:
  struct Frame {
    std::string header;
    std::string control;           // the payload of a control frame
    std::unique_ptr<char[]> bulk;  // or of a bulk frame
    std::size_t bulk_size = 0;
  };
  std::deque<Frame> take_batch();

  boost::asio::steady_timer wake_up_;  // never expires: cancelled when there is something to send
  std::deque<Frame> control_;
  std::deque<Frame> bulk_;
  std::size_t queued_bulk_bytes_ = 0;
  std::vector<std::function<void()>> when_idle_;
  bool finishing_ = false;
};

}  // namespace runjob
