#include "runtime/collectives/shm/memory/handover.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"

namespace runjob::runtime {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kSecretBytes = 16;  // half of the token
constexpr std::size_t kHelloBytes = kSecretBytes + sizeof(std::uint32_t);
constexpr std::size_t kMostPathBytes = 100;  // sockaddr_un has 108
constexpr std::size_t kMostStrangers = 64;   // silent connections beyond that many push out the oldest

/// A connection whose hello is not complete yet.
struct Visitor {
  UniqueFd socket;
  std::string received;
};

std::string random_bytes(std::size_t count) {
  std::string bytes(count, '\0');
  if (::getrandom(bytes.data(), count, 0) != static_cast<ssize_t>(count)) throw system_error("getrandom", errno);
  return bytes;
}

std::string random_name(std::size_t bytes) {
  std::string name;
  for (const char byte : random_bytes(bytes)) name += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return name;
}

/// Calls `use`, which is bind() or connect(), with the address of a socket's path, or of "@" and a name without a file.
template <class Use>
bool with_address(Use use, int socket, const std::string& where) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, where.data(), std::min(where.size(), kMostPathBytes));
  std::size_t length = sizeof address;
  if (where.starts_with('@')) {
    address.sun_path[0] = '\0';
    length = offsetof(sockaddr_un, sun_path) + std::min(where.size(), kMostPathBytes);
  }
  return use(socket, reinterpret_cast<const sockaddr*>(&address), static_cast<socklen_t>(length)) == 0;
}

UniqueFd listen_at(const std::string& where) {
  UniqueFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener || !with_address(::bind, listener.get(), where) || ::listen(listener.get(), SOMAXCONN) != 0) return {};
  return listener;
}

bool is_same_user(int socket) {
  ucred peer{};
  socklen_t length = sizeof peer;
  return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.uid == ::geteuid();
}

std::string hello_of(const std::string& token, int rank) {
  const auto number = static_cast<std::uint32_t>(rank);
  return token.substr(0, kSecretBytes) + std::string(reinterpret_cast<const char*>(&number), sizeof number);
}

/// The missing rank that has sent this hello; 0 for none.
int rank_of(const std::string& hello, const std::string& token, const std::vector<int>& missing) {
  for (const int rank : missing) {
    if (hello == hello_of(token, rank)) return rank;
  }
  return 0;
}

/// Waits for one of `events`, of which the first one cancels. False if the deadline came first.
bool wait_for(std::vector<pollfd>& events, const WaitLimits& limits) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(limits.deadline - Clock::now());
    const int ready =
        ::poll(events.data(), events.size(), static_cast<int>(std::clamp<long>(left.count(), 0, 1 << 30)));
    if (ready < 0 && errno != EINTR) throw system_error("poll", errno);
    if (ready > 0 && events.front().revents != 0) throw Error(Errc::kAborted, "ended while starting");
    if (ready > 0) return true;
    if (ready == 0) return false;
  }
}

/// The names of the ranks in messages.
std::vector<int> called(std::vector<int> ranks, const WaitLimits& limits) {
  for (int& rank : ranks) rank = limits.names.empty() ? rank : limits.names.at(static_cast<std::size_t>(rank));
  return ranks;
}

bool send_descriptor(int socket, int descriptor, std::string secret) {
  iovec data{secret.data(), secret.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
  return ::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == static_cast<ssize_t>(secret.size());
}

/// None unless `secret` comes with it.
UniqueFd take_descriptor(int socket, const std::string& secret) {
  std::string received(kSecretBytes, '\0');
  iovec data{received.data(), received.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  if (::recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT) < 0) return {};
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (header == nullptr || header->cmsg_type != SCM_RIGHTS || header->cmsg_len != CMSG_LEN(sizeof(int))) return {};
  int descriptor = -1;
  std::memcpy(&descriptor, CMSG_DATA(header), sizeof descriptor);
  UniqueFd result(descriptor);
  return received == secret ? std::move(result) : UniqueFd();
}

void accept_visitor(int listener, std::vector<Visitor>& visitors, std::size_t most) {
  UniqueFd socket(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket || !is_same_user(socket.get())) return;
  if (visitors.size() >= most) visitors.erase(visitors.begin());
  visitors.push_back({std::move(socket), {}});
}

/// Reads the bytes that are there. False if the connection is to be closed.
bool read_from(Visitor& visitor) {
  char bytes[kHelloBytes];
  const ssize_t count = ::recv(visitor.socket.get(), bytes, kHelloBytes - visitor.received.size(), MSG_DONTWAIT);
  if (count < 0) return errno == EAGAIN || errno == EINTR;
  visitor.received.append(bytes, static_cast<std::size_t>(count));
  return count > 0;
}

}  // namespace

Handover::Handover(const std::string& directory) : token_(random_bytes(2 * kSecretBytes)) {
  path_ = directory + "/shm-" + random_name(6) + ".sock";
  if (directory.empty() || path_.size() >= kMostPathBytes) {
    own_directory_ = "/tmp/runjob-XXXXXX";
    if (::mkdtemp(own_directory_.data()) == nullptr) {
      throw Error(Errc::kUnavailable, system_error("making a directory in /tmp", errno).what());
    }
    path_ = own_directory_ + "/shm.sock";
  }
  listener_ = listen_at(path_);
  if (!listener_) {
    const std::string why = system_error("listening on " + path_, errno).what();
    remove_file();
    throw Error(Errc::kUnavailable, why);
  }
  name_ = "@runjob-" + random_name(kSecretBytes);
  name_listener_ = listen_at(name_);
  if (!name_listener_) name_.clear();
}

Handover::~Handover() {
  remove_file();
}

void Handover::remove_file() {
  if (!path_.empty()) ::unlink(path_.c_str());
  if (!own_directory_.empty()) ::rmdir(own_directory_.c_str());
  path_.clear();
  own_directory_.clear();
}

void Handover::serve(int descriptor, int size, const WaitLimits& limits) {
  std::vector<int> missing;
  for (int rank = 1; rank < size; ++rank) missing.push_back(rank);
  std::vector<Visitor> visitors;
  while (!missing.empty()) {
    std::vector<pollfd> events{
        {limits.cancel, POLLIN, 0}, {listener_.get(), POLLIN, 0}, {name_listener_.get(), POLLIN, 0}};
    const std::size_t first_visitor = events.size();
    for (const Visitor& visitor : visitors) events.push_back({visitor.socket.get(), POLLIN, 0});
    if (!wait_for(events, limits)) {
      throw Error(Errc::kTimeout,
                  fmt::format("sharing memory: no word from rank {}", fmt::join(called(missing, limits), ", ")));
    }
    for (std::size_t i = visitors.size(); i-- > 0;) {
      Visitor& visitor = visitors[i];
      if (events[first_visitor + i].revents == 0) continue;
      const bool stays = read_from(visitor);
      if (stays && visitor.received.size() < kHelloBytes) continue;
      const int rank = rank_of(visitor.received, token_, missing);
      if (rank != 0 && send_descriptor(visitor.socket.get(), descriptor, token_.substr(kSecretBytes)))
        std::erase(missing, rank);
      visitors.erase(visitors.begin() + static_cast<std::ptrdiff_t>(i));
    }
    for (std::size_t i = 1; i < first_visitor; ++i) {
      if (events[i].revents != 0)
        accept_visitor(events[i].fd, visitors, static_cast<std::size_t>(size) + kMostStrangers);
    }
  }
  remove_file();
  listener_.reset();
  name_listener_.reset();
}

UniqueFd receive_descriptor(const std::string& where, const std::string& token, int rank, const WaitLimits& limits) {
  const int owner = called({0}, limits).front();
  const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket || !with_address(::connect, socket.get(), where)) {
    throw Error(Errc::kPeerLost,
                system_error(fmt::format("sharing memory: connecting to rank {} at {}", owner, where), errno).what());
  }
  if (!is_same_user(socket.get())) throw Error(Errc::kPeerLost, where + " belongs to another user");
  const std::string hello = hello_of(token, rank);
  std::vector<pollfd> events{{limits.cancel, POLLIN, 0}, {socket.get(), POLLIN, 0}};
  if (::send(socket.get(), hello.data(), hello.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(hello.size()) &&
      !wait_for(events, limits)) {
    throw Error(Errc::kTimeout, fmt::format("sharing memory: rank {} does not answer", owner));
  }
  UniqueFd descriptor = take_descriptor(socket.get(), token.substr(std::min(token.size(), kSecretBytes)));
  if (!descriptor) throw Error(Errc::kPeerLost, fmt::format("sharing memory: rank {} closed the connection", owner));
  return descriptor;
}

}  // namespace runjob::runtime
