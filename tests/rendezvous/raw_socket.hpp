#pragma once

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <netinet/in.h>
#include <stdexcept>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>
#include <utility>

#include "base/unique_handle.hpp"

namespace runjob::rendezvous {

/// A plain blocking socket, for sending bytes that no proper client would send. A read that takes over a
/// minute counts as the end.
class RawSocket {
 public:
  explicit RawSocket(UniqueFd descriptor) : descriptor_(std::move(descriptor)) {
    const timeval limit{60, 0};
    ::setsockopt(descriptor_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  }

  static RawSocket connect_to(const std::string& path) {
    UniqueFd descriptor(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    if (::connect(descriptor.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
      throw std::runtime_error("connect to " + path);
    return RawSocket(std::move(descriptor));
  }

  /// TCP, to 127.0.0.1.
  static RawSocket connect_to(int port) {
    UniqueFd descriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    if (::connect(descriptor.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
      throw std::runtime_error("connect to port " + std::to_string(port));
    return RawSocket(std::move(descriptor));
  }

  /// Whether all was taken.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const auto sent = ::send(descriptor_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }

  /// Reads until `end` has been seen; what has come so far when the peer hung up before.
  std::string read_until(std::string_view end) {
    std::string bytes;
    char c = 0;
    while (bytes.find(end, bytes.size() < end.size() ? 0 : bytes.size() - end.size()) == bytes.npos &&
           ::recv(descriptor_.get(), &c, 1, 0) == 1)
      bytes += c;
    return bytes;
  }

  /// `count` bytes, fewer when the peer hung up before.
  std::string read_bytes(std::size_t count) {
    std::string bytes(count, '\0');
    std::size_t have = 0;
    while (have < count) {
      const auto got = ::recv(descriptor_.get(), bytes.data() + have, count - have, 0);
      if (got <= 0) break;
      have += static_cast<std::size_t>(got);
    }
    bytes.resize(have);
    return bytes;
  }

  std::string read_to_end() {
    std::string bytes;
    char block[65536];
    for (;;) {
      const auto got = ::recv(descriptor_.get(), block, sizeof block, 0);
      if (got <= 0) return bytes;
      bytes.append(block, static_cast<std::size_t>(got));
    }
  }

  /// One answer with its body: "200 body". `headers`: if given, gets all before the body.
  std::string read_answer(std::string* headers = nullptr) {
    const std::string header = read_until("\r\n\r\n");
    if (headers != nullptr) *headers = header;
    if (header.empty()) return "hung up";
    const std::size_t length_at = header.find("Content-Length: ");
    const std::size_t length = length_at == header.npos ? 0 : std::stoul(header.substr(length_at + 16));
    std::string body(length, '\0');
    std::size_t have = 0;
    while (have < length) {
      const auto got = ::recv(descriptor_.get(), body.data() + have, length - have, 0);
      if (got <= 0) return "cut off";
      have += static_cast<std::size_t>(got);
    }
    return header.substr(9, 3) + " " + body;
  }

  /// Whether the peer has neither hung up nor sent anything.
  bool is_open() const {
    char c = 0;
    return ::recv(descriptor_.get(), &c, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN;
  }

  void finish_sending() { ::shutdown(descriptor_.get(), SHUT_WR); }
  void hang_up() { descriptor_.reset(); }

 private:
  UniqueFd descriptor_;
};

/// Breaks every connection of this process that was accepted on the Unix socket `path`, as a network might.
/// Returns how many there were.
inline int break_connections(const std::string& path) {
  int broken = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int descriptor = std::stoi(entry.path().filename());
    sockaddr_un own{};
    socklen_t length = sizeof own;
    if (::getsockname(descriptor, reinterpret_cast<sockaddr*>(&own), &length) != 0) continue;
    if (own.sun_family != AF_UNIX || path != own.sun_path) continue;
    int listens = 0;
    length = sizeof listens;
    ::getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length);
    if (listens == 0 && ::shutdown(descriptor, SHUT_RDWR) == 0) ++broken;
  }
  return broken;
}

}  // namespace runjob::rendezvous
