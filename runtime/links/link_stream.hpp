#pragma once

#include <memory>
#include <span>
#include <string>
#include <sys/types.h>
#include <sys/uio.h>

#include "base/unique_handle.hpp"
#include "sealed/noise_handshake.hpp"

namespace runjob::runtime {

/// The bytes of one link in both directions, plain or sealed with the link's keys (sealed_records.hpp). Nothing waits.
/// Owner    of the socket.
/// Threads  one at a time.
/// Errors   of send() and receive(): -1 with errno, as of sendmsg() and recvmsg(); EAGAIN when nothing can move now.
class LinkStream {
 public:
  LinkStream();
  /// Plain.
  LinkStream(UniqueFd socket);  // NOLINT(google-explicit-constructor): a socket is a stream
  LinkStream(UniqueFd socket, const SealKeys& keys);
  ~LinkStream();
  LinkStream(LinkStream&&) noexcept;
  LinkStream& operator=(LinkStream&&) noexcept;

  int fd() const { return socket_.get(); }
  explicit operator bool() const { return static_cast<bool>(socket_); }
  bool is_sealed() const { return seals_ != nullptr; }
  /// Gives the socket away.
  int release() { return socket_.release(); }

  /// The number of bytes that the kernel has taken, from the beginning of `parts` on. The next call must begin with the
  /// bytes after them, because some may have been sealed already.
  ssize_t send(std::span<const iovec> parts);
  /// True while bytes are sealed that send() has not reported as taken.
  bool has_sealed_unsent() const;
  /// The number of bytes that were put into `parts`; 0 at the end of the stream. Fewer than there is room for: no more
  /// bytes are waiting in this process.
  /// Errors  Error(kAuth): the other end has not sealed these bytes; somebody on the network has changed them.
  ssize_t receive(std::span<const iovec> parts);

 private:
  struct Seals;

  ssize_t send_sealed(std::span<const iovec> parts);
  ssize_t receive_sealed(std::span<const iovec> parts);

  UniqueFd socket_;
  std::unique_ptr<Seals> seals_;  ///< null: plain
};

}  // namespace runjob::runtime
