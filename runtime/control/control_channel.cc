#include "runtime/control/control_channel.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/log.hpp"
#include "runtime/control/fork_guard.hpp"
#include "runtime/links/numeric_address.hpp"
#include "runtime/links/silence_watch.hpp"

namespace runjob::runtime {
namespace {

constexpr std::uint32_t kLeastInParts = 4096;  ///< a shorter frame costs less when it is copied into one piece

void prepare_socket(int fd) {
  ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
  ::fcntl(fd, F_SETFD, FD_CLOEXEC);
}

}  // namespace

ControlChannel::ControlChannel(LinkStream stream, std::size_t max_frame_bytes)
    : stream_(std::move(stream)), max_frame_bytes_(max_frame_bytes) {
  prepare_socket(fd());
  fork_guard::add(fd());
}

ControlChannel::~ControlChannel() {
  close();
}

ControlChannel::ControlChannel(ControlChannel&& other) noexcept {
  *this = std::move(other);
}

ControlChannel& ControlChannel::operator=(ControlChannel&& other) noexcept {
  close();
  stream_ = std::move(other.stream_);
  refusal_ = std::move(other.refusal_);
  max_frame_bytes_ = other.max_frame_bytes_;
  outgoing_ = std::move(other.outgoing_);
  sent_ = std::exchange(other.sent_, 0);
  incoming_ = std::move(other.incoming_);
  filled_ = std::exchange(other.filled_, 0);
  taken_ = std::exchange(other.taken_, 0);
  usual_ = other.usual_;
  error_ = std::exchange(other.error_, 0);
  return *this;
}

short ControlChannel::poll_events() const {
  return static_cast<short>(POLLIN | (sent_ < outgoing_.size() ? POLLOUT : 0));
}

void ControlChannel::send(const Parts& parts) {
  if (!is_open()) return;
  std::uint32_t size = 0;
  for (const std::string_view part : parts) size += static_cast<std::uint32_t>(part.size());
  const std::string_view prefix(reinterpret_cast<const char*>(&size), sizeof size);
  std::size_t sent = outgoing_.empty() && size >= kLeastInParts ? send_parts(prefix, parts) : 0;
  const auto keep_rest = [&](std::string_view part) {
    const std::size_t of_part = std::min(sent, part.size());
    outgoing_.append(part.substr(of_part));
    sent -= of_part;
  };
  keep_rest(prefix);
  for (const std::string_view part : parts) keep_rest(part);
  if (!outgoing_.empty()) flush();
}

/// Sends from the caller's memory. Returns the number of bytes that the socket has accepted.
std::size_t ControlChannel::send_parts(std::string_view prefix, const Parts& parts) {
  std::array<iovec, 1 + std::tuple_size_v<Parts>> vectors;
  std::size_t number = 0;
  const auto add = [&](std::string_view part) {
    if (!part.empty()) vectors[number++] = {const_cast<char*>(part.data()), part.size()};
  };
  add(prefix);
  for (const std::string_view part : parts) add(part);
  const ssize_t count = stream_.send(std::span(vectors).first(number));
  return count > 0 ? static_cast<std::size_t>(count) : 0;  // flush() finds out why
}

void ControlChannel::flush() {
  while (is_open() && sent_ < outgoing_.size()) {
    const iovec rest{outgoing_.data() + sent_, outgoing_.size() - sent_};
    const ssize_t count = stream_.send({&rest, 1});
    if (count > 0) {
      sent_ += static_cast<std::size_t>(count);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      return;
    } else if (errno != EINTR) {
      error_ = errno;
      sent_ = outgoing_.size();  // the reading side reports the end, after the peer's last frames
    }
  }
  outgoing_.clear();
  sent_ = 0;
}

void ControlChannel::receive() {
  if (taken_ > 0) {
    std::memmove(received(), received() + taken_, filled_ - taken_);
    filled_ -= std::exchange(taken_, 0);
  }
  while (is_open()) {
    const std::size_t wanted = wanted_bytes();
    if (filled_ >= wanted) return;
    if (filled_ == room()) incoming_.resize(std::clamp(2 * incoming_.size(), std::size_t{1}, pages_of(wanted)));
    const std::size_t left = std::min(wanted, room()) - filled_;
    const ssize_t count = receive_into({received() + filled_, left});
    if (count > 0) {
      filled_ += static_cast<std::size_t>(count);
      if (static_cast<std::size_t>(count) < left) return;
    } else if (count == 0) {
      return close();
    } else if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) {
      error_ = errno;
      return close();
    } else if (errno != EINTR) {
      return;
    }
  }
}

/// How many bytes incoming_ should have. Opened bytes that stay in a sealed stream keep no socket readable, so all of
/// them must be read.
std::size_t ControlChannel::wanted_bytes() const {
  const std::size_t most = sizeof(std::uint32_t) + max_frame_bytes_;
  const std::size_t of_frame = std::max(std::min(next_end().value_or(usual_), most), sizeof(Page));
  return stream_.is_sealed() ? std::max(of_frame, filled_ + sizeof(Page)) : of_frame;
}

/// As LinkStream::receive(). Bytes that the other end has not sealed are the end of the stream.
ssize_t ControlChannel::receive_into(const iovec& room) {
  try {
    return stream_.receive({&room, 1});
  } catch (const Error& error) {
    refusal_ = fmt::format("{}: {}", peer_address(fd()), error.what());
    log::warn("a connection for control is closed: {}", refusal_);
    return 0;
  }
}

/// Where the next frame ends in the memory, as far as its length has come.
std::optional<std::size_t> ControlChannel::next_end() const {
  std::uint32_t size = 0;
  if (filled_ - taken_ < sizeof size) return std::nullopt;
  std::memcpy(&size, incoming_.front().bytes + taken_, sizeof size);
  return taken_ + sizeof size + size;
}

std::optional<std::string_view> ControlChannel::next_frame() {
  const std::optional<std::size_t> end = next_end();
  if (!end) return std::nullopt;
  const std::size_t begin = taken_ + sizeof(std::uint32_t);
  if (*end - begin > max_frame_bytes_) {
    close();
    return std::nullopt;
  }
  if (filled_ < *end) return std::nullopt;
  usual_ = *end - taken_;
  taken_ = *end;
  return std::string_view(received() + begin, *end - begin);
}

void ControlChannel::keep_frames(Memory& memory) {
  const std::size_t left = filled_ - taken_;
  if (memory.size() < incoming_.size()) memory.resize(incoming_.size());
  if (left > 0) std::memcpy(memory.front().bytes, received() + taken_, left);
  std::swap(memory, incoming_);
  filled_ = left;
  taken_ = 0;
}

bool ControlChannel::has_unacknowledged() const {
  if (!is_open()) return false;
  const std::optional<TcpProgress> progress = tcp_progress(fd());
  return sent_ < outgoing_.size() || (progress && (progress->has_data_out || progress->has_unsent));
}

void ControlChannel::close() {
  if (is_open()) fork_guard::close(stream_.release());
}

}  // namespace runjob::runtime
