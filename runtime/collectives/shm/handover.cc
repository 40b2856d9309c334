#include "runtime/collectives/shm/handover.hpp"

#include <algorithm>
#include <cerrno>
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

constexpr std::size_t kTokenBytes = 16;
constexpr std::size_t kHelloBytes = kTokenBytes + sizeof(std::uint32_t);
constexpr std::size_t kMostPathBytes = 100;  // sockaddr_un has 108
constexpr std::size_t kMostStrangers = 64;   // silent connections beyond that many push out the oldest

/// A connection that has not yet said all of its hello.
struct Visitor {
  UniqueFd socket;
  std::string said;
};

std::string random_bytes(std::size_t count) {
  std::string bytes(count, '\0');
  if (::getrandom(bytes.data(), count, 0) != static_cast<ssize_t>(count)) throw system_error("getrandom", errno);
  return bytes;
}

std::string random_name() {
  std::string name = "shm-";
  for (const char byte : random_bytes(6)) name += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return name + ".sock";
}

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), std::min(path.size(), kMostPathBytes));
  return address;
}

bool is_same_user(int socket) {
  ucred peer{};
  socklen_t length = sizeof peer;
  return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.uid == ::geteuid();
}

std::string hello_of(const std::string& token, int rank) {
  const auto number = static_cast<std::uint32_t>(rank);
  return token + std::string(reinterpret_cast<const char*>(&number), sizeof number);
}

/// Which of the missing ranks it is; 0 for none of them.
int rank_of(const std::string& hello, const std::string& token, const std::vector<int>& missing) {
  for (const int rank : missing) {
    if (hello == hello_of(token, rank)) return rank;
  }
  return 0;
}

/// Waits for one of `events`, which begin with the one that cancels. False when time was up first.
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

/// How messages call the ranks.
std::vector<int> called(std::vector<int> ranks, const WaitLimits& limits) {
  for (int& rank : ranks) rank = limits.names.empty() ? rank : limits.names.at(static_cast<std::size_t>(rank));
  return ranks;
}

bool send_descriptor(int socket, int descriptor) {
  char byte = 1;
  iovec data{&byte, 1};
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
  return ::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == 1;
}

UniqueFd take_descriptor(int socket) {
  char byte = 0;
  iovec data{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  if (::recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT) != 1) return {};
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (header == nullptr || header->cmsg_type != SCM_RIGHTS || header->cmsg_len != CMSG_LEN(sizeof(int))) return {};
  int descriptor = -1;
  std::memcpy(&descriptor, CMSG_DATA(header), sizeof descriptor);
  return UniqueFd(descriptor);
}

void accept_visitor(int listener, std::vector<Visitor>& visitors, std::size_t most) {
  UniqueFd socket(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket || !is_same_user(socket.get())) return;
  if (visitors.size() >= most) visitors.erase(visitors.begin());
  visitors.push_back({std::move(socket), {}});
}

/// Reads what there is. False when the visitor is to be dropped.
bool listen_to(Visitor& visitor) {
  char bytes[kHelloBytes];
  const ssize_t count = ::recv(visitor.socket.get(), bytes, kHelloBytes - visitor.said.size(), MSG_DONTWAIT);
  if (count < 0) return errno == EAGAIN || errno == EINTR;
  visitor.said.append(bytes, static_cast<std::size_t>(count));
  return count > 0;
}

}  // namespace

Handover::Handover(const std::string& directory) : token_(random_bytes(kTokenBytes)) {
  path_ = directory + "/" + random_name();
  if (directory.empty() || path_.size() >= kMostPathBytes) {
    own_directory_ = "/tmp/runjob-XXXXXX";
    if (::mkdtemp(own_directory_.data()) == nullptr) {
      throw Error(Errc::kUnavailable, system_error("making a directory in /tmp", errno).what());
    }
    path_ = own_directory_ + "/shm.sock";
  }
  listener_.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const sockaddr_un address = address_of(path_);
  if (!listener_ || ::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(listener_.get(), SOMAXCONN) != 0) {
    const std::string why = system_error("listening on " + path_, errno).what();
    remove_file();
    throw Error(Errc::kUnavailable, why);
  }
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
    std::vector<pollfd> events{{limits.cancel, POLLIN, 0}, {listener_.get(), POLLIN, 0}};
    for (const Visitor& visitor : visitors) events.push_back({visitor.socket.get(), POLLIN, 0});
    if (!wait_for(events, limits)) {
      throw Error(Errc::kTimeout,
                  fmt::format("sharing memory: no word from rank {}", fmt::join(called(missing, limits), ", ")));
    }
    for (std::size_t i = visitors.size(); i-- > 0;) {
      Visitor& visitor = visitors[i];
      if (events[i + 2].revents == 0) continue;
      const bool stays = listen_to(visitor);
      if (stays && visitor.said.size() < kHelloBytes) continue;
      const int rank = rank_of(visitor.said, token_, missing);
      if (rank != 0 && send_descriptor(visitor.socket.get(), descriptor)) std::erase(missing, rank);
      visitors.erase(visitors.begin() + static_cast<std::ptrdiff_t>(i));
    }
    if (events[1].revents != 0) {
      accept_visitor(listener_.get(), visitors, static_cast<std::size_t>(size) + kMostStrangers);
    }
  }
  remove_file();
  listener_.reset();
}

UniqueFd receive_descriptor(const std::string& path, const std::string& token, int rank, const WaitLimits& limits) {
  const int owner = called({0}, limits).front();
  const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_un address = address_of(path);
  if (!socket || ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    throw Error(Errc::kPeerLost,
                system_error(fmt::format("sharing memory: connecting to rank {} at {}", owner, path), errno).what());
  }
  if (!is_same_user(socket.get())) throw Error(Errc::kPeerLost, path + " belongs to another user");
  const std::string hello = hello_of(token, rank);
  std::vector<pollfd> events{{limits.cancel, POLLIN, 0}, {socket.get(), POLLIN, 0}};
  if (::send(socket.get(), hello.data(), hello.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(hello.size()) &&
      !wait_for(events, limits)) {
    throw Error(Errc::kTimeout, fmt::format("sharing memory: rank {} does not answer", owner));
  }
  UniqueFd descriptor = take_descriptor(socket.get());
  if (!descriptor) throw Error(Errc::kPeerLost, fmt::format("sharing memory: rank {} closed the connection", owner));
  return descriptor;
}

}  // namespace runjob::runtime
