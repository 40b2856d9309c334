#include "runtime/messages/message_link.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <sys/socket.h>
#include <sys/uio.h>
#include <utility>

#include "base/error.hpp"
#include "runtime/collectives/copy_bytes.hpp"
#include "runtime/control/fork_guard.hpp"

namespace runjob::runtime {
namespace {

/// From so many missing bytes on, they are read into their place without a copy.
constexpr std::size_t kDirectBytes = 16u << 10;
constexpr std::size_t kMostParts = 16;
/// What is dropped at the end of a link.
constexpr int kMostDrops = 16;
constexpr std::size_t kDropBytes = 4u << 20;

bool is_later(int error) {
  return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

[[noreturn]] void throw_lost(int error) {
  throw Error(Errc::kPeerLost, error == 0 ? "its process has closed the connection" : std::strerror(error));
}

}  // namespace

MessageLink::MessageLink(LinkStream stream) : stream_(std::move(stream)) {
  if (stream_) fork_guard::add(stream_.fd());
}

MessageLink::~MessageLink() {
  if (!stream_) return;
  // Bytes that were not read would make the kernel drop what is on its way to the other end.
  ::shutdown(socket(), SHUT_WR);
  for (int i = 0; i<kMostDrops&& ::recv(socket(), nullptr, kDropBytes, MSG_DONTWAIT | MSG_TRUNC)> 0; ++i) {
  }
  fork_guard::close(stream_.release());
}

void MessageLink::send(const Frame& frame, const void* data, Sender sender) {
  const std::size_t bytes = payload_of(frame);
  outgoing_.push_back({frame, static_cast<const std::byte*>(data), bytes, 0, sender, nullptr});
  if (sender != nullptr || bytes == 0) return;
  Outgoing& last = outgoing_.back();
  last.copy = std::make_unique_for_overwrite<std::byte[]>(bytes);
  copy_bytes(last.copy.get(), data, bytes);
  last.data = last.copy.get();
}

bool MessageLink::write(std::vector<Sender>& done) {
  bool has_moved = false;
  while (!outgoing_.empty()) {
    std::array<iovec, kMostParts> parts;
    std::size_t count = 0, total = 0;
    const auto add = [&](const void* data, std::size_t bytes) {
      if (bytes == 0) return;
      parts[count++] = {const_cast<void*>(data), bytes};
      total += bytes;
    };
    for (const Outgoing& each : outgoing_) {
      if (count + 2 > kMostParts) break;
      const std::size_t of_frame = std::min(each.done, sizeof(Frame)), of_data = each.done - of_frame;
      add(reinterpret_cast<const std::byte*>(&each.frame) + of_frame, sizeof(Frame) - of_frame);
      add(each.data + of_data, each.bytes - of_data);
    }
    const ssize_t sent = stream_.send(std::span(parts).first(count));
    if (sent < 0) {
      if (is_later(errno)) return has_moved;
      throw_lost(errno);
    }
    has_moved = has_moved || sent > 0;
    finish_sent(static_cast<std::size_t>(sent), done);
    if (static_cast<std::size_t>(sent) < total) return has_moved;
  }
  return has_moved;
}

void MessageLink::finish_sent(std::size_t bytes, std::vector<Sender>& done) {
  while (bytes > 0) {
    Outgoing& first = outgoing_.front();
    const std::size_t whole = sizeof(Frame) + first.bytes, taken = std::min(bytes, whole - first.done);
    first.done += taken;
    bytes -= taken;
    if (first.done < whole) return;
    if (first.sender != nullptr) done.push_back(first.sender);
    outgoing_.pop_front();
  }
}

void MessageLink::take_back(Sender sender) {
  for (Outgoing& each : outgoing_) {
    if (each.sender != sender) continue;
    each.sender = nullptr;
    if (each.bytes == 0) continue;
    each.copy = std::make_unique_for_overwrite<std::byte[]>(each.bytes);
    copy_bytes(each.copy.get(), each.data, each.bytes);
    each.data = each.copy.get();
  }
}

bool MessageLink::read(FrameReceiver& receiver, std::span<std::byte> scratch) {
  bool has_moved = false;
  for (;;) {
    const bool is_direct = is_begun_ && target_ != nullptr && bytes_ - bytes_done_ >= kDirectBytes;
    const iovec part =
        is_direct ? iovec{target_ + bytes_done_, bytes_ - bytes_done_} : iovec{scratch.data(), scratch.size()};
    const ssize_t count = stream_.receive({&part, 1});
    if (count < 0 && is_later(errno)) return has_moved;
    if (count <= 0) throw_lost(count == 0 ? 0 : errno);
    has_moved = true;
    const auto bytes = static_cast<std::size_t>(count);
    if (is_direct) {
      bytes_done_ += bytes;
      end_if_complete(receiver);
    } else {
      take(receiver, std::span<const std::byte>(scratch).first(bytes));
    }
    if (bytes < part.iov_len) return true;
  }
}

void MessageLink::take(FrameReceiver& receiver, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    std::size_t taken;
    if (is_begun_) {
      taken = std::min(bytes.size(), bytes_ - bytes_done_);
      if (target_ != nullptr) copy_bytes(target_ + bytes_done_, bytes.data(), taken);
      bytes_done_ += taken;
    } else {
      taken = std::min(bytes.size(), sizeof frame_ - frame_done_);
      std::memcpy(reinterpret_cast<std::byte*>(&frame_) + frame_done_, bytes.data(), taken);
      frame_done_ += taken;
      if (frame_done_ < sizeof frame_) return;
      bytes_ = payload_of(frame_);
      bytes_done_ = 0;
      is_begun_ = true;
      target_ = receiver.begin(frame_);
    }
    bytes = bytes.subspan(taken);
    end_if_complete(receiver);
  }
}

void MessageLink::end_if_complete(FrameReceiver& receiver) {
  if (!is_begun_ || bytes_done_ < bytes_) return;
  is_begun_ = false;
  frame_done_ = 0;
  target_ = nullptr;
  receiver.end(frame_);
}

}  // namespace runjob::runtime
