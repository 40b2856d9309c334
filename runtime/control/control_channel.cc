#include "runtime/control/control_channel.hpp"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <utility>

#include "runtime/control/fork_guard.hpp"

namespace runjob::runtime {
namespace {

/// Sets the keepalive of a TCP socket. A host that vanishes sends nothing, not even an end of stream: after 5 s of
/// silence the kernel probes it every 2 s, five times.
void prepare_socket(int fd) {
  const int on = 1, idle = 5, interval = 2, probes = 5;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on,
               sizeof on);  // these fail harmlessly on sockets other than TCP
  ::setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
  ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
  ::fcntl(fd, F_SETFD, FD_CLOEXEC);
}

}  // namespace

ControlChannel::ControlChannel(UniqueFd socket, std::size_t max_frame_bytes)
    : socket_(std::move(socket)), max_frame_bytes_(max_frame_bytes) {
  prepare_socket(fd());
  fork_guard::add(fd());
}

ControlChannel::~ControlChannel() {
  close();
}

ControlChannel::ControlChannel(ControlChannel&& other) noexcept = default;

ControlChannel& ControlChannel::operator=(ControlChannel&& other) noexcept {
  close();
  socket_ = std::move(other.socket_);
  max_frame_bytes_ = other.max_frame_bytes_;
  outgoing_ = std::move(other.outgoing_);
  incoming_ = std::move(other.incoming_);
  sent_ = std::exchange(other.sent_, 0);
  taken_ = std::exchange(other.taken_, 0);
  return *this;
}

short ControlChannel::poll_events() const {
  return static_cast<short>(POLLIN | (sent_ < outgoing_.size() ? POLLOUT : 0));
}

void ControlChannel::send(std::string_view frame) {
  if (!is_open()) return;
  const auto size = static_cast<std::uint32_t>(frame.size());
  char header[sizeof size];
  std::memcpy(header, &size, sizeof size);
  outgoing_.append(header, sizeof header).append(frame);
  flush();
}

void ControlChannel::flush() {
  while (is_open() && sent_ < outgoing_.size()) {
    const ssize_t count = ::send(fd(), outgoing_.data() + sent_, outgoing_.size() - sent_, MSG_NOSIGNAL);
    if (count > 0) {
      sent_ += static_cast<std::size_t>(count);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      return;
    } else if (errno != EINTR) {
      sent_ = outgoing_.size();  // the reading side reports the end, after the peer's last frames
    }
  }
  outgoing_.clear();
  sent_ = 0;
}

void ControlChannel::receive() {
  char chunk[65536];
  while (is_open()) {
    const ssize_t count = ::recv(fd(), chunk, sizeof chunk, 0);
    if (count > 0) {
      incoming_.append(chunk, static_cast<std::size_t>(count));
      if (static_cast<std::size_t>(count) < sizeof chunk) return;
    } else if (count == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) {
      return close();
    } else if (errno != EINTR) {
      return;
    }
  }
}

std::optional<std::string> ControlChannel::next_frame() {
  std::uint32_t size = 0;
  if (incoming_.size() - taken_ < sizeof size) return std::nullopt;
  std::memcpy(&size, incoming_.data() + taken_, sizeof size);
  if (size > max_frame_bytes_) {
    close();
    return std::nullopt;
  }
  if (incoming_.size() - taken_ - sizeof size < size) return std::nullopt;
  std::string frame = incoming_.substr(taken_ + sizeof size, size);
  taken_ += sizeof size + size;
  if (taken_ == incoming_.size()) {
    incoming_.clear();
    taken_ = 0;
  } else if (taken_ > incoming_.size() / 2) {
    incoming_.erase(0, std::exchange(taken_, 0));
  }
  return frame;
}

void ControlChannel::close() {
  if (is_open()) fork_guard::close(socket_.release());
}

}  // namespace runjob::runtime
