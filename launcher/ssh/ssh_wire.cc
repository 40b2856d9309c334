#include "launcher/ssh/ssh_wire.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <utility>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

namespace runjob {
namespace {

namespace asio = boost::asio;

constexpr std::size_t kInputBytes = 64 * 1024;  // read at once, before the other hosts have their turn
constexpr std::size_t kBeginningBytes = 200;
constexpr std::size_t kSmallInput = 4096;

std::string reason_of(const boost::system::error_code& error) {
  return error == asio::error::eof ? "the other side closed the connection" : error.message();
}

/// sshd leaves Nagle's algorithm on, which holds its second small packet back until the first is acknowledged, and
/// the kernel acknowledges after 40 ms when we have nothing to send: that is twice in a connection's beginning, and
/// for every pair of frames later. The option is no lasting one: it sends the acknowledgement that is due.
void acknowledge_now(int socket) {
  constexpr int kOn = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_QUICKACK, &kOn, sizeof kOn);
}

}  // namespace

SshWire::SshWire(asio::ip::tcp::socket socket)
    : socket_(std::move(socket)),
      changed_(socket_.get_executor(), asio::steady_timer::time_point::max()),
      input_(kInputBytes) {}

std::ptrdiff_t SshWire::take(void* data, std::size_t size) {
  const std::size_t bytes = std::min(size, filled_ - taken_);
  if (bytes == 0 || closed_) return -EAGAIN;
  std::memcpy(data, input_.data() + taken_, bytes);
  taken_ += bytes;
  if (taken_ == filled_) receive();
  return static_cast<std::ptrdiff_t>(bytes);
}

std::ptrdiff_t SshWire::put(const void* data, std::size_t size) {
  if (!broken_ && !closed_) output_.append(static_cast<const char*>(data), size);
  return static_cast<std::ptrdiff_t>(size);
}

void SshWire::flush() {
  if (sending_ || output_.empty() || broken_ || closed_) return;
  sending_ = true;
  std::swap(output_, in_flight_);
  output_.clear();
  asio::async_write(
      socket_, asio::buffer(in_flight_),
      [self = shared_from_this()](const boost::system::error_code& error, std::size_t) { self->on_sent(error); });
}

asio::awaitable<void> SshWire::input() {
  require_open();
  if (taken_ == filled_ && !end_.empty()) throw ConnectionEnded(end_);
  receive();
  co_await wait();
  require_open();
}

asio::awaitable<void> SshWire::flushed(std::size_t bytes) {
  for (;;) {
    require_open();
    flush();
    if (broken_ || output_.size() + in_flight_.size() <= bytes) co_return;
    co_await wait();
  }
}

void SshWire::require_open() const {
  if (closed_) throw ConnectionEnded("the connection was closed");
}

void SshWire::close() {
  if (std::exchange(closed_, true)) return;
  boost::system::error_code ignored;
  if (!sending_ && !broken_ && !output_.empty()) {
    socket_.non_blocking(true, ignored);
    socket_.write_some(asio::buffer(output_), ignored);
  }
  socket_.close(ignored);
  wake();
}

asio::awaitable<void> SshWire::wait() {
  const auto [cancelled] = co_await changed_.async_wait(asio::as_tuple(asio::use_awaitable));
  static_cast<void>(cancelled);
}

void SshWire::receive() {
  if (receiving_ || closed_ || !end_.empty() || taken_ != filled_) return;
  receiving_ = true;
  socket_.async_read_some(asio::buffer(input_),
                          [self = shared_from_this()](const boost::system::error_code& error, std::size_t bytes) {
                            self->on_received(error, bytes);
                          });
}

void SshWire::on_received(const boost::system::error_code& error, std::size_t bytes) {
  receiving_ = false;
  if (closed_) return;
  taken_ = 0;
  filled_ = bytes;
  received_ += bytes;
  if (beginning_.size() < kBeginningBytes)
    beginning_.append(input_.data(), std::min(bytes, kBeginningBytes - beginning_.size()));
  if (error) end_ = reason_of(error);
  if (!error && bytes < kSmallInput) acknowledge_now(socket_.native_handle());
  wake();
}

/// Bytes that could not be sent are dropped without an error, because the reading side gets the same end with its
/// reason.
void SshWire::on_sent(const boost::system::error_code& error) {
  sending_ = false;
  in_flight_.clear();
  if (error) {
    broken_ = true;
    output_.clear();
  }
  flush();
  wake();
}

}  // namespace runjob
