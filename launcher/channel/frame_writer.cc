#include "launcher/channel/frame_writer.hpp"

#include <utility>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace runjob {
namespace asio = boost::asio;

template <FrameType Type>
FrameWriter<Type>::FrameWriter(asio::any_io_executor executor)
    : wake_up_(executor, asio::steady_timer::time_point::max()) {}

template <FrameType Type>
void FrameWriter<Type>::send_control(Type type, int process, Stream stream, std::string payload) {
  FrameHeader<Type> header;
  header.type = type;
  header.stream = stream;
  header.process = process;
  header.length = static_cast<std::uint32_t>(payload.size());
  Frame& frame = control_.emplace_back();
  append_header(frame.header, header);
  frame.control = std::move(payload);
  wake_up_.cancel();
}

template <FrameType Type>
void FrameWriter<Type>::send_bulk(FrameHeader<Type> header, std::unique_ptr<char[]> data, std::size_t size) {
  header.length = static_cast<std::uint32_t>(size);
  Frame& frame = bulk_.emplace_back();
  append_header(frame.header, header);
  frame.bulk = std::move(data);
  frame.bulk_size = size;
  queued_bulk_bytes_ += size;
  wake_up_.cancel();
}

template <FrameType Type>
asio::awaitable<void> FrameWriter<Type>::run(Channel& channel) {
  std::vector<asio::const_buffer> buffers{asio::buffer(kMagic)};
  co_await channel.write(buffers);
  for (;;) {
    if (control_.empty() && bulk_.empty()) {
      for (const auto& done : std::exchange(when_idle_, {})) done();
      if (!control_.empty()) continue;
      if (finishing_) co_return;
      const auto [cancelled] = co_await wake_up_.async_wait(asio::as_tuple(asio::use_awaitable));
      static_cast<void>(cancelled);
      continue;
    }
    const std::deque<Frame> batch = take_batch();
    buffers.clear();
    std::size_t bulk_bytes = 0;
    for (const Frame& frame : batch) {
      buffers.push_back(asio::buffer(frame.header));
      if (!frame.control.empty()) buffers.push_back(asio::buffer(frame.control));
      if (frame.bulk_size != 0) buffers.push_back(asio::buffer(frame.bulk.get(), frame.bulk_size));
      bulk_bytes += frame.bulk_size;
    }
    co_await channel.write(buffers);
    queued_bulk_bytes_ -= bulk_bytes;
    if (bulk_bytes != 0 && on_bulk_sent) on_bulk_sent();
  }
}

template <FrameType Type>
std::deque<typename FrameWriter<Type>::Frame> FrameWriter<Type>::take_batch() {
  constexpr std::size_t kBulkBytesAtOnce = 256 * 1024;  // a control frame waits for at most this much bulk data
  std::deque<Frame> batch = std::exchange(control_, {});
  for (std::size_t bytes = 0; !bulk_.empty() && bytes < kBulkBytesAtOnce;) {
    bytes += bulk_.front().bulk_size;
    batch.push_back(std::move(bulk_.front()));
    bulk_.pop_front();
  }
  return batch;
}

template <FrameType Type>
void FrameWriter<Type>::when_idle(std::function<void()> done) {
  when_idle_.push_back(std::move(done));
  wake_up_.cancel();
}

template <FrameType Type>
void FrameWriter<Type>::finish() {
  finishing_ = true;
  wake_up_.cancel();
}

template class FrameWriter<ToAgent>;
template class FrameWriter<ToLauncher>;

}  // namespace runjob
