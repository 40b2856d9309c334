#include "runtime/collectives/gloo/socket_shutdown.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <memory>
#include <netinet/in.h>
#include <sys/socket.h>
#include <utility>

namespace runjob::runtime {
namespace {

using GetName = int (*)(int, sockaddr*, socklen_t*);

Endpoint endpoint(int fd, GetName get_name) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  if (get_name(fd, reinterpret_cast<sockaddr*>(&address), &length) != 0) return {};
  return endpoint_of({reinterpret_cast<const char*>(&address), sizeof address});
}

bool contains(const std::vector<Endpoint>& list, const Endpoint& wanted) {
  return !wanted.empty() && std::find(list.begin(), list.end(), wanted) != list.end();
}

/// Gives `look` a duplicate of each descriptor of this process, until it returns true.
template <class Look>
void for_each_socket(Look look) {
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir("/proc/self/fd"), ::closedir);
  if (!directory) return;
  while (const dirent* entry = ::readdir(directory.get())) {
    char* end = nullptr;
    const long number = std::strtol(entry->d_name, &end, 10);
    if (end == entry->d_name) continue;  // "." and ".."
    // A duplicate pins the socket: between looking at it and shutting it down nobody can put another in its
    // place.
    UniqueFd socket(::fcntl(static_cast<int>(number), F_DUPFD_CLOEXEC, 0));
    if (socket && look(std::move(socket))) return;
  }
}

}  // namespace

Endpoint endpoint_of(std::string_view socket_address) {
  sockaddr_storage storage{};
  std::memcpy(&storage, socket_address.data(), std::min(socket_address.size(), sizeof storage));
  Endpoint result;
  if (storage.ss_family == AF_INET) {
    sockaddr_in v4;
    std::memcpy(&v4, &storage, sizeof v4);
    result.append(reinterpret_cast<const char*>(&v4.sin_addr), sizeof v4.sin_addr);
    result.append(reinterpret_cast<const char*>(&v4.sin_port), sizeof v4.sin_port);
  } else if (storage.ss_family == AF_INET6) {
    sockaddr_in6 v6;
    std::memcpy(&v6, &storage, sizeof v6);
    result.append(reinterpret_cast<const char*>(&v6.sin6_addr), sizeof v6.sin6_addr);
    result.append(reinterpret_cast<const char*>(&v6.sin6_port), sizeof v6.sin6_port);
  }
  return result;
}

void shut_down_sockets(const std::vector<Endpoint>& own, const std::vector<Endpoint>& peers) {
  for_each_socket([&](UniqueFd socket) {
    if (contains(own, endpoint(socket.get(), ::getsockname)) ||
        contains(peers, endpoint(socket.get(), ::getpeername))) {
      ::shutdown(socket.get(), SHUT_RDWR);
    }
    return false;
  });
}

UniqueFd find_socket(const Endpoint& own, const Endpoint& peer) {
  UniqueFd found;
  for_each_socket([&](UniqueFd socket) {
    const Endpoint other = endpoint(socket.get(), ::getpeername);
    if (other.empty() || (other != peer && endpoint(socket.get(), ::getsockname) != own)) return false;
    found = std::move(socket);
    return true;
  });
  return found;
}

}  // namespace runjob::runtime
