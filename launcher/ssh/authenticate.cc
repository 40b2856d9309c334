#include "launcher/ssh/authenticate.hpp"

#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"
#include "launcher/ssh/ssh_program_needed.hpp"

namespace runjob {
namespace {

namespace asio = boost::asio;

/// What libssh2's callback asks for and the agent answers, between two calls of libssh2.
struct Signature {
  std::string data;  // to be signed; not empty while the agent is to be asked
  std::optional<std::string> signature;
  bool refused = false;
};

/// libssh2 calls it again and again as long as it answers EAGAIN; the signature is freed by libssh2, with free().
int sign(LIBSSH2_SESSION*, unsigned char** result, size_t* size, const unsigned char* data, size_t data_size,
         void** state) {
  auto& wanted = *static_cast<Signature*>(*state);
  if (wanted.refused) return LIBSSH2_ERROR_AGENT_PROTOCOL;
  if (!wanted.signature) {
    wanted.data.assign(reinterpret_cast<const char*>(data), data_size);
    return LIBSSH2_ERROR_EAGAIN;
  }
  *result = static_cast<unsigned char*>(std::malloc(wanted.signature->size()));
  if (*result == nullptr) return LIBSSH2_ERROR_ALLOC;
  std::memcpy(*result, wanted.signature->data(), wanted.signature->size());
  *size = wanted.signature->size();
  return 0;
}

asio::awaitable<long> try_agent_key(SshSession& session, KeyAgent& agent, const std::string& user,
                                    const PublicKey& key) {
  Signature wanted;
  void* state = &wanted;
  const auto* blob = reinterpret_cast<const unsigned char*>(key.blob.data());
  const auto call = [&]() -> long {
    const int result = libssh2_userauth_publickey(session.get(), user.c_str(), blob, key.blob.size(), &sign, &state);
    // More input would not help while the agent is to be asked: ready() must come back.
    return result == LIBSSH2_ERROR_EAGAIN && !wanted.data.empty() ? 1 : result;
  };
  for (;;) {
    const long result = co_await session.ready(call);
    if (result != 1) co_return result;
    const std::string data = std::exchange(wanted.data, {});
    const std::uint32_t flags = agent_flags(data);
    wanted.signature = co_await agent.sign(key, data, flags);
    wanted.refused = !wanted.signature;
  }
}

asio::awaitable<long> try_file(SshSession& session, const std::string& user, const std::string& private_key) {
  const auto call = [&]() -> long {
    return libssh2_userauth_publickey_frommemory(session.get(), user.c_str(), user.size(), nullptr, 0,
                                                 private_key.data(), private_key.size(), nullptr);
  };
  const long result = co_await session.ready(call);
  co_return result;
}

/// What the host would accept, as in "publickey,gssapi-with-mic". Asking is trying to log in with nothing, which may
/// succeed.
asio::awaitable<std::string> ask_methods(SshSession& session, const std::string& user) {
  char* methods = nullptr;
  const auto call = [&]() -> long {
    methods = libssh2_userauth_list(session.get(), user.c_str(), static_cast<unsigned>(user.size()));
    return methods == nullptr ? libssh2_session_last_errno(session.get()) : 0;
  };
  co_await session.ready(call);
  co_return methods == nullptr ? std::string() : std::string(methods);
}

std::string tried_text(const std::vector<std::string>& tried) {
  return tried.empty() ? "none was tried" : fmt::format("tried {}", fmt::join(tried, ", "));
}

[[noreturn]] void fail_disconnected(const SshSession& session, const SshTarget& target,
                                    const std::vector<std::string>& tried) {
  const std::string farewell = session.farewell().empty() ? "" : fmt::format(" ({})", session.farewell());
  throw Error(Errc::kAuth,
              fmt::format("{}: it ended the connection while user {} was logging in{}: {}; name the right key with "
                          "-i, or look into the host's log",
                          target.host, target.user, farewell, tried_text(tried)));
}

[[noreturn]] void fail_refused(const SshTarget& target, const KeyChoice& keys, const std::vector<std::string>& tried,
                               const std::string& methods) {
  if (!keys.for_program.empty()) {
    throw SshProgramNeeded(
        fmt::format("libssh2 {} cannot use {}", libssh2_version(0), fmt::join(keys.for_program, ", ")));
  }
  for (const std::string& method : target.program_methods) {
    if (methods.find(method) != std::string::npos)
      throw SshProgramNeeded(fmt::format("libssh2 does not know {}, which the host offers", method));
  }
  std::string remedy = fmt::format(
      "check the user, and that the public key is in authorized_keys there: ssh-copy-id "
      "{}@{}",
      target.user, target.host);
  if (!keys.too_open.empty())
    remedy = fmt::format("{}, so the key is ignored, as ssh does; take the rights of others away with chmod go=",
                         keys.too_open.front());
  else if (!keys.locked.empty())
    remedy = fmt::format("{} has a passphrase, so give it to ssh-agent first: ssh-add {}", keys.locked.front(),
                         keys.locked.front());
  else if (tried.empty())
    remedy = "name one with -i, or make one with ssh-keygen and put it there with ssh-copy-id";
  throw Error(Errc::kAuth, fmt::format("{}: it accepts no key of ours for user {} ({}); {}", target.host, target.user,
                                       tried_text(tried), remedy));
}

}  // namespace

asio::awaitable<void> authenticate(SshSession& session, KeyAgent& agent, const SshTarget& target,
                                   const KeyChoice& keys) {
  KeyChoice left = keys;
  std::vector<std::string> tried;
  bool gone = false;
  for (const KeyCandidate& candidate : keys.candidates) {
    long result = 0;
    tried.push_back(candidate.name);
    try {
      if (candidate.agent_key) {
        result = co_await try_agent_key(session, agent, target.user, *candidate.agent_key);
      } else {
        result = co_await try_file(session, target.user, candidate.private_key);
      }
    } catch (const ConnectionEnded&) {
      gone = true;
    }
    if (gone || session.disconnected()) fail_disconnected(session, target, tried);
    if (result == 0) co_return;
    if (result == LIBSSH2_ERROR_FILE || result == LIBSSH2_ERROR_METHOD_NONE) left.for_program.push_back(candidate.name);
  }
  const std::string methods = co_await ask_methods(session, target.user);
  if (libssh2_userauth_authenticated(session.get()) == 0) fail_refused(target, left, tried, methods);
}

}  // namespace runjob
