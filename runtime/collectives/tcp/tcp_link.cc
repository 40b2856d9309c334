#include "runtime/collectives/tcp/tcp_link.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>
#include <span>

#include <fmt/format.h>

#include "base/error.hpp"
#include "runtime/collectives/copy_bytes.hpp"

namespace runjob::runtime {
namespace {

constexpr std::size_t kMostParts = 16;
/// More than any message: a length above it is not one of ours.
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 40;
/// The first piece of memory for a message that nobody has asked for.
constexpr std::size_t kFirstRoom = 1 << 20;
/// More than the messages by which an honest rank can be ahead: those of one operation, and some short ones.
constexpr std::size_t kMostEarly = 1 << 20;

bool is_later(int error) {
  return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

/// Parts of memory for one call of sendmsg() or recvmsg().
class Parts {
 public:
  void add(const void* data, std::size_t bytes) {
    if (bytes == 0) return;
    parts_[count_++] = {const_cast<void*>(data), bytes};
    total_ += bytes;
  }
  bool have_room(std::size_t parts) const { return count_ + parts <= kMostParts; }
  std::size_t total() const { return total_; }
  std::span<const iovec> span() const { return {parts_.data(), count_}; }

 private:
  std::array<iovec, kMostParts> parts_;
  std::size_t count_ = 0, total_ = 0;
};

}  // namespace

void TcpLink::throw_lost(int error) {
  error_ = error;
  throw Error(Errc::kPeerLost, error == 0 ? "its process has closed the connection" : std::strerror(error));
}

void TcpLink::send(std::uint64_t tag, const void* data, std::size_t bytes, LinkRequest& request) {
  request.is_done = false;
  const bool is_first = outgoing_.empty();
  outgoing_.push_back({{tag, bytes}, static_cast<const std::byte*>(data), 0, &request, nullptr});
  if (is_first) write();
}

void TcpLink::send_copy(std::uint64_t tag, const void* data, std::size_t bytes) {
  LinkRequest request;
  send(tag, data, bytes, request);
  if (request.is_done) return;
  Outgoing& last = outgoing_.back();
  last.request = nullptr;
  last.copy = std::make_unique_for_overwrite<std::byte[]>(bytes);
  copy_bytes(last.copy.get(), data, bytes);
  last.data = last.copy.get();
}

std::size_t TcpLink::write() {
  std::size_t sent = 0;
  while (!outgoing_.empty()) {
    Parts parts;
    for (const Outgoing& message : outgoing_) {
      if (!parts.have_room(2)) break;
      const std::size_t of_header = std::min(message.done, sizeof(Header)), of_data = message.done - of_header;
      parts.add(reinterpret_cast<const std::byte*>(&message.header) + of_header, sizeof(Header) - of_header);
      parts.add(message.data + of_data, message.header.bytes - of_data);
    }
    const ssize_t count = stream_.send(parts.span());
    if (count < 0) {
      if (is_later(errno)) return sent;
      throw_lost(errno);
    }
    finish_sent(static_cast<std::size_t>(count));
    sent += static_cast<std::size_t>(count);
    if (static_cast<std::size_t>(count) < parts.total()) return sent;
  }
  return sent;
}

void TcpLink::finish_sent(std::size_t bytes) {
  while (bytes > 0) {
    Outgoing& first = outgoing_.front();
    const std::size_t whole = sizeof(Header) + first.header.bytes, taken = std::min(bytes, whole - first.done);
    first.done += taken;
    bytes -= taken;
    if (first.done < whole) return;
    if (first.request != nullptr) first.request->is_done = true;
    outgoing_.pop_front();
  }
}

void TcpLink::receive(std::uint64_t tag, void* data, std::size_t bytes, LinkRequest& request) {
  request.is_done = false;
  const Awaited awaited{tag, static_cast<std::byte*>(data), bytes, &request};
  const auto found = std::find_if(early_.begin(), early_.end(), [tag](const Early& early) { return early.tag == tag; });
  const bool is_arriving = incoming_.is_begun && incoming_.request == nullptr && incoming_.tag == tag;
  const std::size_t length = found != early_.end() ? found->bytes : is_arriving ? incoming_.bytes : bytes;
  if (length != bytes) throw Error(Errc::kProtocol, fmt::format("a message has {} bytes and not {}", length, bytes));
  if (found != early_.end()) {
    if (bytes > 0) copy_bytes(data, found->data.get(), bytes);
    early_.erase(found);
    request.is_done = true;
  } else if (is_arriving) {
    if (incoming_.done > 0) copy_bytes(data, incoming_.data, incoming_.done);
    incoming_.data = awaited.data;
    incoming_.room = bytes;
    incoming_.request = &request;
    incoming_.own.reset();
  } else {
    awaited_.push_back(awaited);
  }
}

bool TcpLink::forget(const LinkRequest& request) {
  if (request.is_done) return true;
  std::erase_if(awaited_, [&](const Awaited& awaited) { return awaited.request == &request; });
  const auto sent = std::find_if(outgoing_.begin(), outgoing_.end(),
                                 [&](const Outgoing& message) { return message.request == &request; });
  if (sent == outgoing_.end()) return incoming_.request != &request;
  const bool is_untouched = sent->done == 0 && !stream_.has_sealed_unsent();
  outgoing_.erase(sent);
  return is_untouched;
}

std::size_t TcpLink::read() {
  std::size_t moved = 0;
  while (has_awaited()) {
    bool is_drained = false;
    moved += staged_.empty() ? read_socket(is_drained) : read_staged();
    if (is_drained) break;
  }
  return moved;
}

/// One call for the rest of the message that is arriving, the header after it and the bytes that are expected then.
std::size_t TcpLink::read_socket(bool& is_drained) {
  Parts parts;
  if (incoming_.is_begun) {
    make_room();
    parts.add(incoming_.data + incoming_.done, incoming_.free_room());
  }
  if (incoming_.room == incoming_.bytes) {
    parts.add(reinterpret_cast<std::byte*>(&header_) + header_done_, sizeof header_ - header_done_);
    if (!awaited_.empty()) parts.add(awaited_.front().data, awaited_.front().bytes);
  }
  const ssize_t count = stream_.receive(parts.span());
  is_drained = count < static_cast<ssize_t>(parts.total());
  if (count < 0 && is_later(errno)) return 0;
  if (count <= 0) throw_lost(count == 0 ? 0 : errno);
  auto left = static_cast<std::size_t>(count);
  if (incoming_.is_begun) {
    const std::size_t taken = std::min(left, incoming_.free_room());
    incoming_.done += taken;
    left -= taken;
    end_if_complete();
  }
  const std::size_t of_header = std::min(left, sizeof header_ - header_done_);
  header_done_ += of_header;
  if (header_done_ == sizeof header_) take_header(left - of_header);
  return static_cast<std::size_t>(count);
}

/// The header is complete, and `expected_bytes` after it lie in the memory of the message that was asked for first.
void TcpLink::take_header(std::size_t expected_bytes) {
  const bool is_expected = !awaited_.empty() && matches(awaited_.front());
  if (expected_bytes > 0 && !is_expected) {
    staged_.assign(awaited_.front().data, awaited_.front().data + expected_bytes);
    staged_done_ = 0;
    expected_bytes = 0;
  }
  begin(header_);
  incoming_.done = expected_bytes;
  end_if_complete();
}

std::size_t TcpLink::read_staged() {
  std::size_t taken;
  if (incoming_.is_begun) {
    make_room();
    taken = std::min(staged_.size() - staged_done_, incoming_.free_room());
    copy_bytes(incoming_.data + incoming_.done, staged_.data() + staged_done_, taken);
    incoming_.done += taken;
  } else {
    taken = std::min(staged_.size() - staged_done_, sizeof header_ - header_done_);
    std::memcpy(reinterpret_cast<std::byte*>(&header_) + header_done_, staged_.data() + staged_done_, taken);
    header_done_ += taken;
  }
  staged_done_ += taken;
  if (staged_done_ == staged_.size()) staged_.clear();
  if (incoming_.is_begun) {
    end_if_complete();
  } else if (header_done_ == sizeof header_) {
    take_header(0);
  }
  return taken;
}

/// Errors  Error(kProtocol).
void TcpLink::begin(const Header& header) {
  if (header.bytes > kMostBytes) {
    throw Error(Errc::kProtocol, fmt::format("a message claims to have {} bytes", header.bytes));
  }
  header_done_ = 0;
  const auto found =
      std::find_if(awaited_.begin(), awaited_.end(), [this](const Awaited& awaited) { return matches(awaited); });
  if (found == awaited_.end()) {
    if (early_.size() == kMostEarly)
      throw Error(Errc::kProtocol, fmt::format("it has sent {} messages that nobody has asked for", kMostEarly));
    incoming_ = {.is_begun = true, .tag = header.tag, .bytes = header.bytes};
    return;
  }
  if (found->bytes != header.bytes) {
    throw Error(Errc::kProtocol, fmt::format("a message has {} bytes and not {}", header.bytes, found->bytes));
  }
  incoming_ = {true, header.tag, found->data, found->bytes, 0, found->request, found->bytes};
  awaited_.erase(found);
}

/// The memory for an unasked message grows in steps, each as long as the part that has arrived.
void TcpLink::make_room() {
  if (incoming_.free_room() > 0 || incoming_.room == incoming_.bytes) return;
  const std::size_t room = std::min(incoming_.bytes, std::max(kFirstRoom, 2 * incoming_.room));
  auto* const larger = static_cast<std::byte*>(std::realloc(incoming_.own.get(), room));
  if (larger == nullptr) throw std::bad_alloc();
  static_cast<void>(incoming_.own.release());  // realloc() has given it back
  incoming_.own.reset(larger);
  incoming_.data = larger;
  incoming_.room = room;
}

void TcpLink::end_if_complete() {
  if (incoming_.done < incoming_.bytes) return;
  if (incoming_.request != nullptr) {
    incoming_.request->is_done = true;
  } else {
    early_.push_back({incoming_.tag, std::move(incoming_.own), incoming_.bytes});
  }
  incoming_ = {};
}

}  // namespace runjob::runtime
