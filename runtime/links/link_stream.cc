#include "runtime/links/link_stream.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <sys/socket.h>

#include "sealed/sealed_records.hpp"

namespace runjob::runtime {
namespace {

/// Plain bytes of a record: so many that its 18 bytes more and its one call do not count, and so few that the other end
/// opens one while the next is on its way.
constexpr std::size_t kRecordBytes = 32u << 10;
constexpr std::size_t kReadBytes = 64u << 10;

/// Copies bytes of `parts`, after the first `skipped` ones, to `out`: at most `most`.
void gather(std::span<const iovec> parts, std::size_t skipped, std::size_t most, std::string& out) {
  for (const iovec& part : parts) {
    const std::size_t passed = std::min(skipped, part.iov_len),
                      count = std::min(part.iov_len - passed, most - out.size());
    skipped -= passed;
    out.append(static_cast<const char*>(part.iov_base) + passed, count);
  }
}

std::size_t scatter(std::string_view bytes, std::span<const iovec> parts) {
  std::size_t done = 0;
  for (const iovec& part : parts) {
    const std::size_t count = std::min(bytes.size() - done, part.iov_len);
    if (count > 0) std::memcpy(part.iov_base, bytes.data() + done, count);
    done += count;
  }
  return done;
}

msghdr message_of(std::span<const iovec> parts) {
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(parts.data());
  message.msg_iovlen = parts.size();
  return message;
}

}  // namespace

struct LinkStream::Seals {
  explicit Seals(const SealKeys& keys) : sealer(keys.sending), opener(keys.receiving) {}

  Sealer sealer;
  Opener opener;
  std::string plain;            ///< that `sealed` was made of
  std::string sealed;           ///< the record that is being sent
  std::size_t sealed_sent = 0;  ///< bytes of it
  std::array<char, kReadBytes> received;
  std::string opened;            ///< plain bytes that have come
  std::size_t opened_taken = 0;  ///< of which so many were received by the caller
};

LinkStream::LinkStream() = default;
LinkStream::LinkStream(UniqueFd socket) : socket_(std::move(socket)) {}
LinkStream::LinkStream(UniqueFd socket, const SealKeys& keys)
    : socket_(std::move(socket)), seals_(std::make_unique<Seals>(keys)) {}
LinkStream::~LinkStream() = default;
LinkStream::LinkStream(LinkStream&&) noexcept = default;
LinkStream& LinkStream::operator=(LinkStream&&) noexcept = default;

bool LinkStream::has_sealed_unsent() const {
  return seals_ != nullptr && !seals_->sealed.empty();
}

ssize_t LinkStream::send(std::span<const iovec> parts) {
  if (seals_ != nullptr) return send_sealed(parts);
  if (parts.size() == 1) return ::send(fd(), parts[0].iov_base, parts[0].iov_len, MSG_DONTWAIT | MSG_NOSIGNAL);
  const msghdr message = message_of(parts);
  return ::sendmsg(fd(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/// Bytes count as taken once the kernel has the whole record: until then the caller must call again.
ssize_t LinkStream::send_sealed(std::span<const iovec> parts) {
  Seals& seals = *seals_;
  std::size_t taken = 0;
  for (;;) {
    if (seals.sealed.empty()) {
      seals.plain.clear();
      gather(parts, taken, kRecordBytes, seals.plain);
      if (seals.plain.empty()) return static_cast<ssize_t>(taken);
      seals.sealer.seal(seals.plain, seals.sealed);
      seals.sealed_sent = 0;
    }
    const std::string_view rest = std::string_view(seals.sealed).substr(seals.sealed_sent);
    const ssize_t count = ::send(fd(), rest.data(), rest.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (count < 0) return taken > 0 ? static_cast<ssize_t>(taken) : -1;  // the next call meets the error again
    seals.sealed_sent += static_cast<std::size_t>(count);
    if (seals.sealed_sent < seals.sealed.size()) continue;
    taken += seals.plain.size();
    seals.sealed.clear();
  }
}

ssize_t LinkStream::receive(std::span<const iovec> parts) {
  if (seals_ != nullptr) return receive_sealed(parts);
  if (parts.size() == 1) return ::recv(fd(), parts[0].iov_base, parts[0].iov_len, MSG_DONTWAIT);
  msghdr message = message_of(parts);
  return ::recvmsg(fd(), &message, MSG_DONTWAIT);
}

ssize_t LinkStream::receive_sealed(std::span<const iovec> parts) {
  Seals& seals = *seals_;
  for (;;) {
    const std::size_t done = scatter(std::string_view(seals.opened).substr(seals.opened_taken), parts);
    seals.opened_taken += done;
    if (done > 0) return static_cast<ssize_t>(done);
    seals.opened.clear();
    seals.opened_taken = 0;
    const ssize_t count = ::recv(fd(), seals.received.data(), seals.received.size(), MSG_DONTWAIT);
    if (count <= 0) return count;
    seals.opener.feed({seals.received.data(), static_cast<std::size_t>(count)}, seals.opened);
  }
}

}  // namespace runjob::runtime
