#include "launcher/agent/connect_back.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/secrets/secret.hpp"
#include "base/unique_handle.hpp"
#include "launcher/sealed_channel/agent_call.hpp"

namespace runjob {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto kLimit = 10s;
/// Something else may have accepted, which will never answer. The last address gets all of the time that is left: after
/// an interruption of the network, TCP repeats what was lost after as long again.
constexpr auto kHandshakeLimit = 3s;

/// Waits for `events` on `descriptor`. Errors  Error(kTimeout).
void wait_for(int descriptor, short events, Clock::time_point deadline) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    pollfd wanted{descriptor, events, 0};
    const int ready = left.count() <= 0 ? 0 : ::poll(&wanted, 1, static_cast<int>(left.count()));
    if (ready > 0) return;
    if (ready == 0) throw Error(Errc::kTimeout, "no answer in time");
    if (errno != EINTR) throw system_error("poll", errno);
  }
}

/// Reads up to `count` bytes; fewer at the end of the stream.
std::string read_some(int descriptor, std::size_t count, Clock::time_point deadline) {
  std::string bytes(count, '\0');
  for (;;) {
    wait_for(descriptor, POLLIN, deadline);
    const ssize_t got = ::read(descriptor, bytes.data(), count);
    if (got >= 0) {
      bytes.resize(static_cast<std::size_t>(got));
      return bytes;
    }
    if (errno != EINTR && errno != EAGAIN) throw system_error("read", errno);
  }
}

std::string read_all(int descriptor, std::size_t count, Clock::time_point deadline) {
  std::string bytes;
  while (bytes.size() < count) {
    const std::string more = read_some(descriptor, count - bytes.size(), deadline);
    if (more.empty()) throw Error(Errc::kConnect, "it hung up");
    bytes += more;
  }
  return bytes;
}

/// The line has the job's key, so no copy of it stays in memory.
AgentCall read_call(Clock::time_point deadline) {
  std::string line;
  line.reserve(kMaxCallBytes);
  try {
    while (line.find('\n') == std::string::npos && line.size() < kMaxCallBytes) {
      std::string more = read_some(STDIN_FILENO, kMaxCallBytes - line.size(), deadline);
      if (more.empty()) break;
      line += more;
      wipe(more);
    }
  } catch (const Error& error) {
    throw Error(error.code(),
                fmt::format("srun's standard input did not give the address of runjob: {}", error.what()));
  }
  AgentCall call = parse_agent_call(std::string_view(line).substr(0, line.find('\n')));
  wipe(line);
  return call;
}

struct Address {
  sockaddr_storage bytes{};
  socklen_t length = 0;
};

/// Empty when `text` is not numeric.
Address to_address(const std::string& text, int port) {
  Address address;
  auto* four = reinterpret_cast<sockaddr_in*>(&address.bytes);
  auto* six = reinterpret_cast<sockaddr_in6*>(&address.bytes);
  if (::inet_pton(AF_INET, text.c_str(), &four->sin_addr) == 1) {
    four->sin_family = AF_INET;
    four->sin_port = htons(static_cast<std::uint16_t>(port));
    address.length = sizeof *four;
  } else if (::inet_pton(AF_INET6, text.c_str(), &six->sin6_addr) == 1) {
    six->sin6_family = AF_INET6;
    six->sin6_port = htons(static_cast<std::uint16_t>(port));
    address.length = sizeof *six;
  }
  return address;
}

/// A connection to one address. All of them are begun at the same time, because an address may never answer.
class Attempt {
 public:
  Attempt(const std::string& address, int port) : name_(fmt::format("{} port {}", address, port)) {
    const Address target = to_address(address, port);
    if (target.length == 0) {
      fail("not a numeric address");
      return;
    }
    socket_.reset(::socket(target.bytes.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!socket_ || (::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&target.bytes), target.length) != 0 &&
                     errno != EINPROGRESS))
      fail(std::strerror(errno));
  }

  int descriptor() const { return socket_.get(); }  ///< -1 once it has failed
  const std::string& name() const { return name_; }
  const std::string& failure() const { return failure_; }
  UniqueFd take() { return std::move(socket_); }

  void fail(const std::string& why) {
    failure_ = why;
    socket_.reset();
  }
  /// The descriptor is writable. Returns true if the connection was made, false if it failed.
  bool is_connected() {
    int error = 0;
    socklen_t length = sizeof error;
    ::getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &length);
    if (error != 0) fail(std::strerror(error));
    return error == 0;
  }

 private:
  std::string name_;
  UniqueFd socket_;
  std::string failure_;
};

/// The next attempt that has connected; null when all have failed or the time is up.
Attempt* wait_for_one(std::vector<Attempt>& attempts, Clock::time_point deadline) {
  for (;;) {
    std::vector<pollfd> wanted;
    wanted.reserve(attempts.size());
    for (const Attempt& attempt : attempts) wanted.push_back({attempt.descriptor(), POLLOUT, 0});  // -1 is left out
    const bool any = std::any_of(wanted.begin(), wanted.end(), [](const pollfd& each) { return each.fd >= 0; });
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    if (!any || left.count() <= 0) return nullptr;
    if (::poll(wanted.data(), wanted.size(), static_cast<int>(left.count())) < 0 && errno != EINTR) return nullptr;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (wanted[i].fd >= 0 && wanted[i].revents != 0 && attempts[i].is_connected()) return &attempts[i];
    }
  }
}

void send_all(int descriptor, std::string_view bytes, Clock::time_point deadline) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(descriptor, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EAGAIN) wait_for(descriptor, POLLOUT, deadline);
    if (sent < 0 && errno != EAGAIN && errno != EINTR) throw system_error("send", errno);
    if (sent > 0) bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

std::string node_name(const Environment& environment) {
  const auto found = environment.find("SLURMD_NODENAME");
  if (found != environment.end() && !found->second.empty()) return found->second.substr(0, kMaxNodeNameBytes);
  std::array<char, kMaxNodeNameBytes + 1> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

SealKeys shake_hands(int socket, const rendezvous::JobKey& key, const std::string& node, Clock::time_point deadline) {
  NoiseHandshake handshake(NoiseHandshake::Role::kInitiator, key, kCallPrologue);
  const std::string message = handshake.write(node);
  std::string text(kCallMagic);
  text += static_cast<char>(message.size() >> 8);
  text += static_cast<char>(message.size() & 0xff);
  send_all(socket, text + message, deadline);
  const std::string length = read_all(socket, 2, deadline);
  const std::string answer = read_all(socket, NoiseHandshake::kOverheadBytes, deadline);
  const bool right_length = length == std::string{'\0', static_cast<char>(NoiseHandshake::kOverheadBytes)};
  if (!right_length || !handshake.read(answer))
    throw Error(Errc::kAuth, "who answers there does not hold the job's key");
  return handshake.finish();
}

/// The agent's channel from now on. It carries small frames both ways, so nothing may wait for more.
void become_channel(UniqueFd socket) {
  const int on = 1;
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO})
    if (::dup2(socket.get(), standard) < 0) throw system_error("dup2", errno);
}

bool is_last(const std::vector<Attempt>& attempts) {
  return std::count_if(attempts.begin(), attempts.end(), [](const auto& each) { return each.descriptor() >= 0; }) == 1;
}

std::string failures_of(const std::vector<Attempt>& attempts) {
  std::string text;
  for (const Attempt& attempt : attempts)
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", attempt.name(),
                        attempt.failure().empty() ? "no answer" : attempt.failure());
  return text;
}

}  // namespace

SealKeys connect_back(const Environment& environment) {
  const Clock::time_point deadline = Clock::now() + kLimit;
  AgentCall call = read_call(deadline);
  // The address at which SLURM reaches srun, and therefore the launcher's host.
  const auto of_srun = environment.find("SLURM_LAUNCH_NODE_IPADDR");
  if (of_srun != environment.end()) {
    std::erase(call.addresses, of_srun->second);
    call.addresses.insert(call.addresses.begin(), of_srun->second);
  }
  std::vector<Attempt> attempts;
  for (const std::string& address : call.addresses) attempts.emplace_back(address, call.port);
  while (Attempt* attempt = wait_for_one(attempts, deadline)) {
    try {
      const auto limit = is_last(attempts) ? deadline : std::min(deadline, Clock::now() + kHandshakeLimit);
      SealKeys keys = shake_hands(attempt->descriptor(), call.key, node_name(environment), limit);
      become_channel(attempt->take());
      return keys;
    } catch (const Error& error) {
      attempt->fail(error.what());
    }
  }
  throw Error(Errc::kConnect,
              fmt::format("cannot reach runjob: {}; does a firewall keep the nodes from it?", failures_of(attempts)));
}

}  // namespace runjob
