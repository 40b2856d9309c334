#include "launcher/remote/bootstrap.hpp"

#include <array>
#include <string_view>
#include <vector>

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <fmt/format.h>

#include "base/error.hpp"
#include "launcher/channel/frame.hpp"
#include "launcher/remote/bootstrap_reply.hpp"
#include "rendezvous/auth.hpp"

namespace runjob {
namespace {

namespace asio = boost::asio;

// No single quote and no line break may occur in a script: the whole goes through the login shell in single quotes. An
// exclamation mark would be csh's.

/// Each reply to us begins a line of its own, also when the shell's own files have printed text without a line's end,
/// such as a terminal's title. Goes into the cache's folder, if there is one. From then on "." is the folder whose
/// owner and mode were checked, whatever happens to the names above it: nobody else can change what is in it.
constexpr std::string_view kEnterFolder =
    "umask 077; d=${XDG_CACHE_HOME:-$HOME/.cache}/runjob; t=; "
    "fail() { rm -f \"$t\"; echo; echo \"runjob-agent-failed $*\"; exit 1; }; "
    "alone() { "
    "test -h \"$1\" && fail \"$2 is a link, and runjob follows none there; remove it, or set XDG_CACHE_HOME\"; "
    "own=no; test -O \"$1\" && own=yes; set -- \"$2\" `ls -ldn \"$1\"`; "
    "test $own = yes || fail \"$1 belongs to user $4, and not to you; remove it, or set XDG_CACHE_HOME to a folder of "
    "yours\"; "
    "case $2 in ?????[-]??[-]*) ;; *) fail \"others may write to $1; remove it after a look, or chmod go-w $1\";; "
    "esac; }; "
    "enter() { test -h \"$d\" && alone \"$d\" \"$d\"; cd -P \"$d\" || fail cannot enter \"$d\"; alone . \"$d\"; }; ";

/// $1 is the build id, $2 the seconds that an upload may take: after a cut of the network its end never comes. A later
/// upload removes one that a power cut has left; the cut may also have left an agent without its contents.
constexpr std::string_view kStart =
    "test -d \"$d\" || mkdir -p \"$d\" || fail cannot make the directory \"$d\"; enter; f=./agent-$1; "
    "if test -x \"$f\" && test -s \"$f\"; then alone \"$f\" \"$d/agent-$1\"; exec \"$f\"; fi; "
    "echo; echo runjob-agent-missing `uname -s` `uname -m` `uname -r`; "
    "read size sum || exit 1; "
    "find . -name \"upload.*\" -mmin +60 -exec rm -f {} + 2> /dev/null; "
    "limit=; command -v timeout > /dev/null && limit=\"timeout $2\"; "
    "t=`mktemp ./upload.XXXXXX` || fail cannot write to \"$d\"; "
    "$limit head -c \"$size\" > \"$t\" || fail cannot write to \"$d\" within $2 s, is there space left?; "
    "s=`sha256sum < \"$t\"`; test \"${s%% *}\" = \"$sum\" || fail the copy in \"$d\" differs, is there space left?; "
    "chmod 700 \"$t\"; test -x \"$t\" || fail programs may not be executed in \"$d\"; "
    "mv -f \"$t\" \"$f\" || fail cannot rename in \"$d\"; "
    "exec \"$f\"";

constexpr std::string_view kClean =
    "if test -h \"$d\" || test -d \"$d\"; then enter; rm -f ./agent-* ./upload.* || fail cannot remove agents from "
    "\"$d\"; "
    "fi; echo; echo runjob-cache-cleaned";

constexpr char kNoAnswer[] = "the connection was closed before the agent answered";

/// Reads more of the channel to the end of `received`.
/// Errors  Error(kConnect) at its end, with the best known reason, or else `otherwise`.
asio::awaitable<void> receive_more(Channel& channel, std::string& received, const char* otherwise = kNoAnswer) {
  std::array<char, 4096> buffer;
  const std::size_t bytes = co_await channel.read_some(asio::buffer(buffer));
  received.append(buffer.data(), bytes);
  if (bytes != 0 && received.size() <= kMaxNoiseBytes) co_return;
  std::string said = channel.last_message();
  if (said.empty()) said = quoted(received);
  if (said.empty()) said = otherwise;
  throw Error(Errc::kConnect, said);
}

asio::awaitable<void> send_agent(Channel& channel, const AgentFile& agent) {
  const std::string file = read_agent(agent);
  const std::string announcement = fmt::format("{} {}\n", file.size(), rendezvous::to_hex(rendezvous::sha256(file)));
  try {
    std::vector<asio::const_buffer> buffers{asio::buffer(announcement), asio::buffer(file)};
    co_await channel.write(std::move(buffers));
  } catch (const Error&) {  // not the reason: the host has said that, or closed
  }
}

/// The host has asked for the agent. When it cannot take all of it, it says so instead of reading on.
asio::awaitable<void> upload(Channel& channel, const AgentFile& agent, std::string& received) {
  using namespace asio::experimental::awaitable_operators;
  co_await (send_agent(channel, agent) || receive_more(channel, received));
}

std::string for_login_shell(std::string_view script, std::string_view arguments) {
  return fmt::format("exec /bin/sh -c '{}' runjob-agent {}", script, arguments);
}

}  // namespace

std::string bootstrap_command(const AgentFile& agent, std::chrono::milliseconds upload_limit) {
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(upload_limit).count();
  return for_login_shell(fmt::format("{}{}", kEnterFolder, kStart), fmt::format("{} {}", agent.build_id, seconds));
}

std::string clean_cache_command() {
  return for_login_shell(fmt::format("{}{}", kEnterFolder, kClean), "");
}

asio::awaitable<ReadyChannel> bootstrap_agent(std::unique_ptr<Channel> channel, AgentFile agent) {
  std::string received;
  bool uploaded = false;
  for (;;) {
    const BootstrapReply reply = read_bootstrap_reply(received);
    if (reply.kind == BootstrapReply::Kind::kAgent) co_return ReadyChannel{std::move(channel), std::move(received)};
    if (reply.kind == BootstrapReply::Kind::kFailed) throw Error(Errc::kConnect, reply.text);
    if (reply.kind == BootstrapReply::Kind::kMissing && !uploaded) {
      check_system(reply.text, agent.machine);
      co_await upload(*channel, agent, received);
      uploaded = true;
    } else {
      co_await receive_more(*channel, received);
    }
  }
}

asio::awaitable<void> cache_cleaned(std::unique_ptr<Channel> channel) {
  std::string received;
  for (;;) {
    const BootstrapReply reply = read_bootstrap_reply(received);
    if (reply.kind == BootstrapReply::Kind::kCleaned) co_return;
    if (reply.kind == BootstrapReply::Kind::kFailed) throw Error(Errc::kConnect, reply.text);
    co_await receive_more(*channel, received, "the connection was closed before the cache was cleaned");
  }
}

}  // namespace runjob
