#include "runtime/control/control_connect.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <netdb.h>
#include <netinet/in.h>
#include <optional>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"
#include "runtime/control/numeric_address.hpp"

namespace runjob::runtime {
namespace {

constexpr std::size_t kTokenBytes = 16, kMaxHelloBytes = 64;
constexpr int kLongQueue = 1024;  // strangers that connect before the members do must not fill it

[[noreturn]] void fail(const std::string& what, int error_number) {
  throw Error(Errc::kConnect, system_error(what, error_number).what());
}

int milliseconds_until(Deadline deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 1 << 30));
}

/// Compares two tokens in a time that does not depend on the position of the first difference.
bool same_token(const std::string& a, const std::string& b) {
  if (a.size() != b.size()) return false;
  unsigned difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) difference |= static_cast<unsigned char>(a[i] ^ b[i]);
  return difference == 0;
}

/// The first frame on a control connection.
struct Hello {
  std::uint32_t magic = 0x524a4332;  // "RJC2": runjob control, version 2
  std::int32_t number = 0;
  char token[kTokenBytes] = {};
};

/// The member that `channel` belongs to; nullopt until it has identified itself. Closes a channel that is refused.
std::optional<std::size_t> greet(ControlChannel& channel, const std::string& token, int own,
                                 const std::vector<ControlChannel>& members) {
  channel.receive();
  const auto frame = channel.next_frame();
  if (!frame) return std::nullopt;
  Hello hello;
  if (frame->size() == sizeof hello) {
    std::memcpy(&hello, frame->data(), sizeof hello);
    const auto number = static_cast<std::size_t>(hello.number);
    const bool is_ours = hello.magic == Hello().magic && same_token({hello.token, kTokenBytes}, token);
    if (is_ours && hello.number > own && number < members.size() && !members[number].is_open()) {
      channel.set_max_frame_bytes(ControlChannel::kMaxFrameBytes);
      return number;
    }
  }
  channel.close();
  return std::nullopt;
}

std::vector<std::string> missing_members(const std::vector<ControlChannel>& members, int own,
                                         const std::vector<std::string>& names) {
  std::vector<std::string> missing;
  for (auto number = static_cast<std::size_t>(own) + 1; number < members.size(); ++number) {
    if (!members[number].is_open()) missing.push_back(names[number]);
  }
  return missing;
}

/// Waits for an event on `descriptors`. Returns false when the deadline passes first.
bool poll_until(std::vector<pollfd>& descriptors, const WaitLimits& limits) {
  descriptors.push_back({limits.cancel, POLLIN, 0});  // poll() ignores -1
  int ready = 0;
  do {
    ready = ::poll(descriptors.data(), descriptors.size(), milliseconds_until(limits.deadline));
  } while (ready < 0 && errno == EINTR);
  if (descriptors.back().revents != 0) throw Error(Errc::kAborted, "connecting was ended");
  return ready != 0;
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
  if (::bind(fd, list->ai_addr, list->ai_addrlen) != 0 || ::listen(fd, std::max(size + 16, kLongQueue)) != 0) {
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

std::vector<ControlChannel> accept_members(const ControlListener& listener, const std::string& token, int own,
                                           const std::vector<std::string>& names, const WaitLimits& limits) {
  std::vector<ControlChannel> members(names.size()), strangers;
  for (std::size_t missing = names.size() - 1 - static_cast<std::size_t>(own); missing > 0;) {
    std::vector<pollfd> descriptors{{listener.socket.get(), POLLIN, 0}};
    for (const ControlChannel& stranger : strangers) descriptors.push_back({stranger.fd(), POLLIN, 0});
    if (!poll_until(descriptors, limits)) {
      throw Error(Errc::kTimeout,
                  fmt::format("these ranks did not connect to {} in time: {}", names[static_cast<std::size_t>(own)],
                              fmt::join(missing_members(members, own, names), ", ")));
    }
    for (ControlChannel& stranger : strangers) {
      const auto number = greet(stranger, token, own, members);
      if (!number) continue;
      members[*number] = std::move(stranger);
      --missing;
    }
    std::erase_if(strangers, [](const ControlChannel& stranger) { return !stranger.is_open(); });
    UniqueFd accepted(::accept4(listener.socket.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (accepted) strangers.emplace_back(std::move(accepted), kMaxHelloBytes);
  }
  return members;
}

ControlChannel connect_to_member(const ControlAddress& to, int own, const std::string& name, const WaitLimits& limits) {
  const std::string what = fmt::format("connecting to {} at {} port {}", name, to.address, to.port);
  const AddressList list = parse_address(to.address, to.port);
  UniqueFd socket(::socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) fail("making a socket", errno);
  if (::connect(socket.get(), list->ai_addr, list->ai_addrlen) != 0) {
    if (errno != EINPROGRESS) fail(what, errno);
    std::vector<pollfd> descriptors{{socket.get(), POLLOUT, 0}};
    if (!poll_until(descriptors, limits)) throw Error(Errc::kTimeout, what + ": no answer in time");
    int error = 0;
    socklen_t length = sizeof error;
    ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &length);
    if (error != 0) fail(what, error);
  }
  ControlChannel channel(std::move(socket));
  Hello hello;
  hello.number = own;
  to.token.copy(hello.token, kTokenBytes);
  channel.send({reinterpret_cast<const char*>(&hello), sizeof hello});
  return channel;
}

}  // namespace runjob::runtime
