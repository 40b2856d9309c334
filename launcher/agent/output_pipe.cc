#include "launcher/agent/output_pipe.hpp"

#include <algorithm>
#include <chrono>
#include <memory>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace runjob {
namespace {

namespace asio = boost::asio;

constexpr std::size_t kReadBytes = 128 * 1024;
constexpr std::size_t kMaxQueuedBytes = 1024 * 1024;  // of all streams of this host together

std::int64_t wall_clock_us() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(now).count();
}

}  // namespace

OutputPipe::OutputPipe(asio::any_io_executor executor, UniqueFd reader, int process, Stream stream, std::int64_t credit,
                       FrameWriter<ToLauncher>& writer)
    : pipe_(executor, reader.release()),
      wake_up_(executor, asio::steady_timer::time_point::max()),
      credit_(credit),
      writer_(writer) {
  header_.type = ToLauncher::kOutput;
  header_.stream = stream;
  header_.process = process;
}

asio::awaitable<void> OutputPipe::run() {
  while (!closed_) {
    co_await wait_until_allowed();
    const std::size_t size = credit_ > 0 ? std::min(kReadBytes, static_cast<std::size_t>(credit_)) : kReadBytes;
    auto data = std::make_unique_for_overwrite<char[]>(size);
    const asio::mutable_buffer buffer(data.get(), size);
    reading_ = true;
    const auto [error, bytes] = co_await pipe_.async_read_some(buffer, asio::as_tuple(asio::use_awaitable));
    reading_ = false;
    if (error) break;
    if (discarding_) continue;
    credit_ -= static_cast<std::int64_t>(bytes);
    header_.time_us = wall_clock_us();
    writer_.send_bulk(header_, std::move(data), bytes);
  }
  if (!discarding_) writer_.send_bulk(header_, nullptr, 0);
}

asio::awaitable<void> OutputPipe::wait_until_allowed() {
  while (!allowed()) {
    const auto [cancelled] = co_await wake_up_.async_wait(asio::as_tuple(asio::use_awaitable));
    static_cast<void>(cancelled);
  }
}

bool OutputPipe::allowed() const {
  return closed_ || discarding_ || (credit_ > 0 && writer_.queued_bulk_bytes() < kMaxQueuedBytes);
}

void OutputPipe::add_credit(std::int64_t bytes) {
  credit_ += bytes;
  wake_up_.cancel();
}

void OutputPipe::on_queue_shorter() {
  wake_up_.cancel();
}

void OutputPipe::discard() {
  discarding_ = true;
  wake_up_.cancel();
}

/// A read that has completed, and whose bytes are about to be sent, may have left others in the pipe.
bool OutputPipe::idle() {
  asio::posix::stream_descriptor::bytes_readable left;
  boost::system::error_code ignored;
  if (reading_) pipe_.io_control(left, ignored);
  return reading_ && left.get() == 0;
}

void OutputPipe::close() {
  closed_ = true;
  boost::system::error_code ignored;
  pipe_.close(ignored);
  wake_up_.cancel();
}

}  // namespace runjob
