#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>

#include "launcher/channel/channel.hpp"
#include "launcher/channel/frame.hpp"

namespace runjob {

/// Sends the frames of one direction over a channel, control frames always before queued bulk data.
/// Owner    the owner spawns run() and keeps this object until run() has returned.
/// Threads  the loop's one thread.
template <FrameType Type>
class FrameWriter {
 public:
  explicit FrameWriter(boost::asio::any_io_executor executor);

  /// Queues a control frame; `payload` is a CBOR document or empty.
  void send_control(Type type, int process, std::string payload) {
    send_control(type, process, Stream::kNone, std::move(payload));
  }
  void send_control(Type type, int process, Stream stream, std::string payload);

  /// Queues a frame of bulk data. Bulk frames keep their order; control frames overtake them.
  void send_bulk(FrameHeader<Type> header, std::unique_ptr<char[]> data, std::size_t size);

  /// The bytes of bulk data that the channel has not taken yet.
  std::size_t queued_bulk_bytes() const { return queued_bulk_bytes_; }

  /// Sends the magic over `channel`, then every queued frame, also those queued before the call. Returns after
  /// finish(), once both queues are empty. `channel` must live until then. Errors  those of Channel::write().
  boost::asio::awaitable<void> run(Channel& channel);

  /// Lets run() return once everything queued has been sent.
  void finish();

  /// Calls `done` once, from run(), when the channel has taken every queued frame; never if the channel breaks before.
  void when_idle(std::function<void()> done);

  /// run() calls it whenever the channel has taken bulk data. May be empty.
  std::function<void()> on_bulk_sent;

 private:
  struct Frame {
    std::string header;
    std::string control;           // the payload of a control frame
    std::unique_ptr<char[]> bulk;  // the payload of a bulk frame
    std::size_t bulk_size = 0;
  };
  std::deque<Frame> take_batch();

  boost::asio::steady_timer wake_up_;  // never expires; cancelled when there is a frame to send
  std::deque<Frame> control_;
  std::deque<Frame> bulk_;
  std::size_t queued_bulk_bytes_ = 0;
  std::vector<std::function<void()>> when_idle_;
  bool finishing_ = false;
};

}  // namespace runjob
