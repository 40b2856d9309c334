#include "runtime/engine/control_connect.hpp"

#include <algorithm>
#include <cerrno>
#include <memory>
#include <netdb.h>
#include <netinet/in.h>
#include <optional>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"
#include "runtime/engine/control_message.hpp"
#include "runtime/engine/negotiation.hpp"

namespace runjob::runtime {
namespace {

constexpr std::size_t kTokenBytes = 16, kMaxHelloBytes = 64;

using AddressList = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

AddressList parse_address(const std::string& address, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int error = ::getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &list);
  if (error != 0) {
    throw Error(Errc::kConnect, fmt::format("'{}' is no numeric address: {}", address, ::gai_strerror(error)));
  }
  return {list, ::freeaddrinfo};
}

[[noreturn]] void fail(const std::string& what, int error_number) {
  throw Error(Errc::kConnect, system_error(what, error_number).what());
}

int milliseconds_until(Deadline deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 1 << 30));
}

/// Takes the same time wherever the first difference is.
bool same_token(const std::string& a, const std::string& b) {
  if (a.size() != b.size()) return false;
  unsigned difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) difference |= static_cast<unsigned char>(a[i] ^ b[i]);
  return difference == 0;
}

/// The rank that `channel` proves to be; nullopt while it has not said so. Closes a channel that is refused.
std::optional<std::size_t> greet(ControlChannel& channel, const std::string& token,
                                 const std::vector<ControlChannel>& members) {
  channel.receive();
  const auto frame = channel.next_frame();
  if (!frame) return std::nullopt;
  try {
    const Hello hello = decode_hello(*frame);
    const auto rank = static_cast<std::size_t>(hello.rank);
    if (same_token(hello.token, token) && hello.rank > 0 && rank < members.size() && !members[rank].is_open()) {
      channel.set_max_frame_bytes(ControlChannel::kMaxFrameBytes);
      return rank;
    }
  } catch (const Error&) {  // not one of ours
  }
  channel.close();
  return std::nullopt;
}

std::string missing_text(const std::vector<ControlChannel>& members, const std::vector<std::string>& hosts) {
  std::vector<std::string> names;
  for (std::size_t rank = 1; rank < members.size(); ++rank) {
    if (!members[rank].is_open()) names.push_back(rank_text(static_cast<int>(rank), hosts));
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

std::string make_token() {
  std::string token(kTokenBytes, '\0');
  if (::getrandom(token.data(), token.size(), 0) != static_cast<ssize_t>(token.size())) {
    throw system_error("getrandom", errno);
  }
  return token;
}

ControlListener listen_for_members(const std::string& address, int size) {
  const AddressList list = parse_address(address, 0);
  ControlListener listener;
  listener.socket.reset(::socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int fd = listener.socket.get();
  if (fd < 0) fail("making a socket", errno);
  if (::bind(fd, list->ai_addr, list->ai_addrlen) != 0 || ::listen(fd, size + 16) != 0) {
    fail(fmt::format("listening on {}", address), errno);
  }
  sockaddr_storage bound{};
  socklen_t length = sizeof bound;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &length) != 0) fail("getsockname", errno);
  char port[NI_MAXSERV];
  ::getnameinfo(reinterpret_cast<sockaddr*>(&bound), length, nullptr, 0, port, sizeof port, NI_NUMERICSERV);
  listener.port = static_cast<std::uint16_t>(std::stoi(port));
  return listener;
}

std::vector<ControlChannel> accept_members(const ControlListener& listener, const std::string& token,
                                           const std::vector<std::string>& hosts, Deadline deadline) {
  std::vector<ControlChannel> members(hosts.size()), strangers;
  for (std::size_t missing = hosts.size() - 1; missing > 0;) {
    std::vector<pollfd> descriptors{{listener.socket.get(), POLLIN, 0}};
    for (const ControlChannel& stranger : strangers) descriptors.push_back({stranger.fd(), POLLIN, 0});
    if (::poll(descriptors.data(), descriptors.size(), milliseconds_until(deadline)) == 0) {
      throw Error(Errc::kTimeout,
                  fmt::format("these ranks did not connect to rank 0 in time: {}", missing_text(members, hosts)));
    }
    for (ControlChannel& stranger : strangers) {
      const auto rank = greet(stranger, token, members);
      if (!rank) continue;
      members[*rank] = std::move(stranger);
      --missing;
    }
    std::erase_if(strangers, [](const ControlChannel& stranger) { return !stranger.is_open(); });
    UniqueFd accepted(::accept4(listener.socket.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (accepted) strangers.emplace_back(std::move(accepted), kMaxHelloBytes);
  }
  return members;
}

ControlChannel connect_to_coordinator(const std::string& address, std::uint16_t port, const std::string& token,
                                      int rank, Deadline deadline) {
  const std::string what = fmt::format("connecting to rank 0 at {} port {}", address, port);
  const AddressList list = parse_address(address, port);
  UniqueFd socket(::socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) fail("making a socket", errno);
  if (::connect(socket.get(), list->ai_addr, list->ai_addrlen) != 0) {
    if (errno != EINPROGRESS) fail(what, errno);
    pollfd descriptor{socket.get(), POLLOUT, 0};
    int ready = 0;
    do {
      ready = ::poll(&descriptor, 1, milliseconds_until(deadline));
    } while (ready < 0 && errno == EINTR);
    if (ready == 0) throw Error(Errc::kTimeout, what + ": no answer in time");
    int error = 0;
    socklen_t length = sizeof error;
    ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &length);
    if (error != 0) fail(what, error);
  }
  ControlChannel channel(std::move(socket));
  channel.send(encode(Hello{token, rank}));
  return channel;
}

}  // namespace runjob::runtime
