#include "launcher/output/output_sink.hpp"

#include <cerrno>
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/unique_handle.hpp"

namespace runjob {
namespace {

/// The same pipe or terminal with an open file description of our own; empty for other kinds and when
/// refused.
UniqueFd reopen_nonblocking(int descriptor) {
  struct stat info {};
  if (::fstat(descriptor, &info) != 0) return {};
  const bool terminal = S_ISCHR(info.st_mode) && ::isatty(descriptor) == 1;
  if (!S_ISFIFO(info.st_mode) && !terminal) return {};
  const std::string path = "/proc/self/fd/" + std::to_string(descriptor);
  return UniqueFd(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
}

/// A descriptor that is readable while the socket is writable; empty for other kinds. Asio would make the socket itself
/// non-blocking, for all processes that share it.
UniqueFd watch_socket(int descriptor) {
  struct stat info {};
  if (::fstat(descriptor, &info) != 0 || !S_ISSOCK(info.st_mode)) return {};
  UniqueFd watch(::epoll_create1(EPOLL_CLOEXEC));
  epoll_event event{};
  event.events = EPOLLOUT;
  if (watch && ::epoll_ctl(watch.get(), EPOLL_CTL_ADD, descriptor, &event) != 0) watch.reset();
  return watch;
}

}  // namespace

OutputSink::OutputSink(boost::asio::any_io_executor executor, int descriptor)
    : own_(executor), descriptor_(descriptor) {
  if (UniqueFd watch = watch_socket(descriptor); watch) {
    is_socket_ = true;
    own_.assign(watch.release());
    return;
  }
  UniqueFd reopened = reopen_nonblocking(descriptor);
  if (!reopened) return;
  descriptor_ = reopened.get();
  own_.assign(reopened.release());
}

void OutputSink::flush() {
  if (!waiting_) write_some();
}

void OutputSink::drain() {
  flush();
  while (backlog() > 0) {
    pollfd writable{descriptor_, POLLOUT, 0};
    ::poll(&writable, 1, -1);
    write_some();
  }
}

ssize_t OutputSink::write_once() const {
  const char* text = buffer_.data() + written_;
  if (is_socket_) return ::send(descriptor_, text, backlog(), MSG_DONTWAIT | MSG_NOSIGNAL);
  return ::write(descriptor_, text, backlog());
}

void OutputSink::write_some() {
  while (backlog() > 0) {
    const ssize_t bytes = error_ != 0 ? static_cast<ssize_t>(backlog()) : write_once();
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0 && errno == EAGAIN) {
      if (own_.is_open()) return wait_until_writable();
      pollfd inherited{descriptor_, POLLOUT, 0};  // somebody else made it non-blocking
      ::poll(&inherited, 1, -1);
      continue;
    }
    if (bytes < 0) {
      error_ = errno;
      continue;
    }
    written_ += static_cast<std::size_t>(bytes);
  }
  buffer_.clear();
  written_ = 0;
}

void OutputSink::wait_until_writable() {
  constexpr std::size_t kCompactBytes = 1024 * 1024;
  if (written_ > kCompactBytes) {
    buffer_.erase(0, written_);
    written_ = 0;
  }
  if (waiting_) return;
  waiting_ = true;
  using boost::asio::posix::descriptor_base;
  own_.async_wait(is_socket_ ? descriptor_base::wait_read : descriptor_base::wait_write,
                  [this](boost::system::error_code error) {
                    waiting_ = false;
                    if (error) return;
                    write_some();
                    if (on_progress) on_progress();
                  });
}

}  // namespace runjob
