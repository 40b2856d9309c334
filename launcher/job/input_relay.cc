#include "launcher/job/input_relay.hpp"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <unistd.h>

#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <fmt/format.h>

#include "base/error.hpp"

namespace runjob {
namespace {

using namespace std::chrono_literals;

constexpr std::int64_t kReadBytes = 64 * 1024;

bool in_background(int descriptor) {
  const pid_t foreground = ::tcgetpgrp(descriptor);
  return foreground > 0 && foreground != ::getpgrp();
}

}  // namespace

InputRelay::InputRelay(boost::asio::any_io_executor executor, int descriptor, std::int64_t window, Send send)
    : input_(executor), timer_(executor), window_(window), credit_(window), send_(std::move(send)) {
  const int copy = ::fcntl(descriptor, F_DUPFD_CLOEXEC, 3);
  if (copy >= 0) input_.assign(copy);
}

InputRelay::~InputRelay() = default;

void InputRelay::start() {
  if (!input_.is_open()) {
    ended_ = true;
    return send_({});
  }
  wait_for_input();
}

void InputRelay::add_credit(std::int64_t bytes) {
  if (bytes < 0 || bytes > window_ - credit_)
    throw Error(Errc::kProtocol,
                fmt::format("it gave credit for {} bytes of input, of which it had {}", bytes, window_ - credit_));
  credit_ += bytes;
  wait_for_input();
}

void InputRelay::stop() {
  ended_ = true;
  timer_.cancel();
  boost::system::error_code ignored;
  input_.close(ignored);
}

void InputRelay::wait_for_input() {
  if (waiting_ || ended_ || credit_ <= 0) return;
  waiting_ = true;
  // Only waits: asio would make the descriptor non-blocking if it were to read it.
  input_.async_wait(boost::asio::posix::stream_descriptor::wait_read, [this](boost::system::error_code error) {
    waiting_ = false;
    if (error == boost::asio::error::operation_aborted || ended_) return;
    read_now();  // any other error: a regular file, which epoll refuses and which is always ready
  });
}

void InputRelay::read_now() {
  if (in_background(input_.native_handle())) {
    waiting_ = true;
    timer_.expires_after(500ms);
    timer_.async_wait([this](boost::system::error_code error) {
      waiting_ = false;
      if (!error) wait_for_input();
    });
    return;
  }
  std::string bytes(static_cast<std::size_t>(std::min(credit_, kReadBytes)), '\0');
  const ssize_t got = ::read(input_.native_handle(), bytes.data(), bytes.size());
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return wait_for_input();
  bytes.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  credit_ -= static_cast<std::int64_t>(bytes.size());
  taken_ += static_cast<std::int64_t>(bytes.size());
  ended_ = bytes.empty();  // the end, or an error such as EIO when the terminal has gone
  send_(std::move(bytes));
  wait_for_input();
}

}  // namespace runjob
