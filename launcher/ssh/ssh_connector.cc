#include "launcher/ssh/ssh_connector.hpp"

#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>

#include "base/error.hpp"
#include "base/log.hpp"
#include "hostfile/text_cursor.hpp"
#include "launcher/channel/with_timeout.hpp"
#include "launcher/network/interface_facts.hpp"
#include "launcher/ssh/authenticate.hpp"
#include "launcher/ssh/connect_socket.hpp"
#include "launcher/ssh/files/identity_file.hpp"
#include "launcher/ssh/key_agent.hpp"
#include "launcher/ssh/resolve_name.hpp"
#include "launcher/ssh/ssh_program_needed.hpp"
#include "launcher/ssh/this_host.hpp"

namespace runjob {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

constexpr int kMostTries = 5;
constexpr std::chrono::milliseconds kFirstPause{200};     // then twice that, and so on
constexpr std::uint64_t kMostHandshakeBytes = 64 * 1024;  // a real one has a tenth of that

/// Cheapest first among those that nobody has broken. SHA-1 and CBC, which libssh2 would offer too, are not here.
constexpr std::string_view kKeyExchanges =
    "curve25519-sha256,curve25519-sha256@libssh.org,ecdh-sha2-nistp256,ecdh-sha2-nistp384,ecdh-sha2-nistp521,"
    "diffie-hellman-group16-sha512,diffie-hellman-group18-sha512,diffie-hellman-group14-sha256";
constexpr std::string_view kCiphers = "aes128-gcm@openssh.com,aes256-gcm@openssh.com,aes128-ctr,aes192-ctr,aes256-ctr";
constexpr std::string_view kMacs = "hmac-sha2-256,hmac-sha2-512";

enum class Phase { kResolve, kConnect, kHandshake, kLogin, kCommand };

/// What answered instead of an SSH server, as far as it said something: "; it says 'HTTP/1.1 400 Bad Request'".
std::string what_answered(const std::string& beginning) {
  if (beginning.empty() || beginning.substr(0, 4) == "SSH-") return "";
  return fmt::format("; it says {}", show_text(beginning.substr(0, beginning.find_first_of("\r\n"))));
}

}  // namespace

/// One host on its way.
struct SshConnector::Attempt {
  SshTarget target;
  std::string command;
  RemoteMessage message;
  KeyAgent agent;
  std::string host_key_algorithms = {};
  std::vector<tcp::endpoint> endpoints = {};
  Phase phase = Phase::kResolve;

  [[noreturn]] void fail(const std::string& text) const {
    throw Error(Errc::kConnect, fmt::format("{}: {}", target.host, text));
  }

  [[noreturn]] void fail_late(std::chrono::milliseconds limit) const {
    const std::string place = place_of(target);
    const std::string within = fmt::format("within {:g} s", std::chrono::duration<double>(limit).count());
    switch (phase) {
      case Phase::kResolve:
        fail(fmt::format("no name server knows an address for {} {}; check the name, and the name servers",
                         target.address, within));
      case Phase::kConnect:
        fail(
            fmt::format("{} does not answer {}; check that it is up and that no firewall drops the port, or give a "
                        "longer --connect-timeout",
                        place, within));
      case Phase::kHandshake:
        fail(
            fmt::format("{} accepts connections, but does not speak SSH {}; check that sshd is what listens there, and "
                        "the load of the host",
                        place, within));
      case Phase::kLogin:
        fail(
            fmt::format("the login of user {} does not end {}; check ssh-agent (does it wait for you?) and the load of "
                        "the host",
                        target.user, within));
      case Phase::kCommand:
        fail(fmt::format("no command starts {}; check the load of the host", within));
    }
    fail(place);
  }
};

SshConnector::SshConnector(asio::any_io_executor executor, const SshOptions& options)
    : executor_(executor), options_(options), limit_(executor, options.concurrency), random_(std::random_device()()) {}

asio::awaitable<std::unique_ptr<Channel>> SshConnector::open(SshTarget target, std::string command,
                                                             RemoteMessage message) {
  if (!target.needs_program.empty()) throw SshProgramNeeded(target.needs_program);
  const HandshakeLimit::Permit permit = co_await limit_.acquire();
  Attempt attempt{std::move(target), std::move(command), std::move(message), KeyAgent(executor_)};
  std::optional<std::unique_ptr<Channel>> channel;
  try {
    channel = co_await with_timeout(executor_, open_channel(attempt), options_.connect_timeout);
  } catch (const ConnectionEnded& end) {
    attempt.fail(
        fmt::format("the connection ended before a command ran there: {}; look into the host's log", end.what()));
  }
  if (!channel) attempt.fail_late(options_.connect_timeout);
  co_return std::move(*channel);
}

asio::awaitable<std::unique_ptr<Channel>> SshConnector::open_channel(Attempt& attempt) {
  co_await resolve(attempt);
  attempt.host_key_algorithms = host_keys_.algorithms(attempt.target);
  const KeyChoice keys = co_await find_keys(attempt);
  std::unique_ptr<SshSession> session = co_await connect(attempt);
  attempt.phase = Phase::kLogin;
  co_await authenticate(*session, attempt.agent, attempt.target, keys);
  attempt.phase = Phase::kCommand;
  std::unique_ptr<Channel> channel = co_await SshChannel::open(std::move(session), attempt.command, attempt.message);
  co_return channel;
}

asio::awaitable<void> SshConnector::resolve(Attempt& attempt) {
  const SshTarget& target = attempt.target;
  try {
    attempt.endpoints = co_await resolve_name(executor_, target.address, target.port);
  } catch (const Error& error) {
    attempt.fail(fmt::format("{}{}; check the host list, /etc/hosts and the name servers",
                             target.address == target.host ? "" : target.address + ": ", error.what()));
  }
  if (!target.may_be_this_host) co_return;
  for (const tcp::endpoint& endpoint : attempt.endpoints) {
    const std::string address = endpoint.address().to_string();
    if (is_own_address(address)) throw ThisHost(address);
  }
}

asio::awaitable<KeyChoice> SshConnector::find_keys(Attempt& attempt) {
  const SshTarget& target = attempt.target;
  const std::vector<AgentKey> agent_keys = co_await attempt.agent.keys(target.agent_socket);
  std::vector<IdentityFile> files;
  for (const std::string& path : target.identities) {
    if (std::optional<IdentityFile> file = read_identity(path)) files.push_back(std::move(*file));
  }
  const KeyRules rules{target.identities_are_defaults, target.identities_only, libssh2_has_rsa_sha2()};
  KeyChoice keys = choose_keys(files, agent_keys, rules);
  for (const std::string& text : keys.too_open) {
    if (warned_.insert(text).second) log::warn("{}: this private key is ignored, as ssh does; chmod go= it", text);
  }
  if (keys.candidates.empty() && !keys.for_program.empty())
    throw SshProgramNeeded(fmt::format("libssh2 {} cannot use {}", libssh2_version(0), keys.for_program.front()));
  co_return keys;
}

/// Up to the checked host key. A host that hangs up before that may only have too many guests just now.
asio::awaitable<std::unique_ptr<SshSession>> SshConnector::connect(Attempt& attempt) {
  std::chrono::milliseconds pause = kFirstPause;
  for (int tries = 1;; ++tries) {
    std::string reason;
    try {
      std::unique_ptr<SshSession> session = co_await connect_once(attempt);
      co_return session;
    } catch (const ConnectionEnded& end) {
      reason = end.what();
    }
    if (tries == kMostTries)
      attempt.fail(
          fmt::format("{} hangs up before the login, {} times in a row: {}; check sshd there (MaxStartups, its "
                      "log), and that it is what listens on that port",
                      place_of(attempt.target), tries, reason));
    std::uniform_int_distribution<std::chrono::milliseconds::rep> jitter(pause.count() / 2, pause.count() * 3 / 2);
    asio::steady_timer timer(executor_, std::chrono::milliseconds(jitter(random_)));
    co_await timer.async_wait(asio::use_awaitable);
    pause *= 2;
  }
}

asio::awaitable<std::unique_ptr<SshSession>> SshConnector::connect_once(Attempt& attempt) {
  std::string problem;
  std::optional<tcp::socket> socket;
  try {
    attempt.phase = Phase::kConnect;
    tcp::socket connected = co_await connect_socket(executor_, attempt.endpoints);
    socket.emplace(std::move(connected));
  } catch (const Error& error) {
    problem = error.what();
  }
  if (!socket)
    attempt.fail(fmt::format("{}; check that the host is up and that sshd listens on that port (-p)", problem));
  attempt.phase = Phase::kHandshake;
  auto session = std::make_unique<SshSession>(std::move(*socket));
  co_await shake_hands(attempt, *session);
  co_return session;
}

asio::awaitable<void> SshConnector::shake_hands(Attempt& attempt, SshSession& session) {
  const SshTarget& target = attempt.target;
  session.prefer(LIBSSH2_METHOD_HOSTKEY, attempt.host_key_algorithms);
  session.prefer(LIBSSH2_METHOD_KEX, kKeyExchanges);
  for (const int kind : {LIBSSH2_METHOD_CRYPT_CS, LIBSSH2_METHOD_CRYPT_SC}) session.prefer(kind, kCiphers);
  for (const int kind : {LIBSSH2_METHOD_MAC_CS, LIBSSH2_METHOD_MAC_SC}) session.prefer(kind, kMacs);
  SshWire& wire = session.wire();
  const auto call = [&]() -> long {
    const int result = libssh2_session_handshake(session.get(), wire.descriptor());
    return result == LIBSSH2_ERROR_EAGAIN && wire.received() > kMostHandshakeBytes ? LIBSSH2_ERROR_PROTO : result;
  };
  long result = 0;
  try {
    result = co_await session.ready(call);
  } catch (const ConnectionEnded& end) {
    throw ConnectionEnded(end.what() + what_answered(wire.beginning()));
  }
  if (session.disconnected()) throw ConnectionEnded(session.farewell());
  if (result == LIBSSH2_ERROR_KEX_FAILURE || result == LIBSSH2_ERROR_KEY_EXCHANGE_FAILURE ||
      result == LIBSSH2_ERROR_METHOD_NONE)
    throw SshProgramNeeded(fmt::format("libssh2 {} and the host have no way of exchanging keys in common: {}",
                                       libssh2_version(0), session.last_error()));
  if (result == LIBSSH2_ERROR_HOSTKEY_SIGN)
    throw Error(Errc::kAuth,
                fmt::format("{}: it does not prove that the host key is its own; somebody may be listening "
                            "in between",
                            target.host));
  if (result != 0)
    attempt.fail(fmt::format("{} does not speak SSH: {}{}; check that sshd is what listens there", place_of(target),
                             session.last_error(), what_answered(wire.beginning())));
  std::size_t size = 0;
  int type = 0;
  const char* key = libssh2_session_hostkey(session.get(), &size, &type);
  host_keys_.check(target, PublicKey{std::string(key == nullptr ? "" : key, size)});
}

}  // namespace runjob
