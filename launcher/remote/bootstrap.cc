#include "launcher/remote/bootstrap.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string_view>
#include <vector>

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <fmt/format.h>

#include "base/error.hpp"
#include "launcher/channel/frame.hpp"
#include "rendezvous/auth.hpp"

namespace runjob {
namespace {

namespace asio = boost::asio;

constexpr std::string_view kMissing = "runjob-agent-missing ";
constexpr std::string_view kFailed = "runjob-agent-failed ";
constexpr std::string_view kCleaned = "runjob-cache-cleaned";

// No single quote and no line break may occur in a script: the whole goes through the login shell in single quotes. An
// exclamation mark would be csh's.

/// Goes into the cache's folder, if there is one. From then on "." is the folder whose owner and mode were checked,
/// whatever happens to the names above it: nobody else can change what is in it.
constexpr std::string_view kEnterFolder =
    "umask 077; d=${XDG_CACHE_HOME:-$HOME/.cache}/runjob; t=; "
    "fail() { rm -f \"$t\"; echo \"runjob-agent-failed $*\"; exit 1; }; "
    "alone() { "
    "test -h \"$1\" && fail \"$2 is a link, and runjob follows none there; remove it, or set XDG_CACHE_HOME\"; "
    "own=no; test -O \"$1\" && own=yes; set -- \"$2\" `ls -ldn \"$1\"`; "
    "test $own = yes || fail \"$1 belongs to user $4, and not to you; remove it, or set XDG_CACHE_HOME to a folder of "
    "yours\"; "
    "case $2 in ?????[-]??[-]*) ;; *) fail \"others may write to $1; remove it after a look, or chmod go-w $1\";; "
    "esac; }; "
    "enter() { test -h \"$d\" && alone \"$d\" \"$d\"; cd -P \"$d\" || fail cannot enter \"$d\"; alone . \"$d\"; }; ";

/// $1 is the build id.
constexpr std::string_view kStart =
    "test -d \"$d\" || mkdir -p \"$d\" || fail cannot make the directory \"$d\"; enter; f=./agent-$1; "
    "if test -x \"$f\"; then alone \"$f\" \"$d/agent-$1\"; exec \"$f\"; fi; "
    "echo runjob-agent-missing `uname -s` `uname -m` `uname -r`; "
    "read size sum || exit 1; "
    "t=`mktemp ./upload.XXXXXX` || fail cannot write to \"$d\"; "
    "head -c \"$size\" > \"$t\" || fail cannot write to \"$d\", is there space left?; "
    "s=`sha256sum < \"$t\"`; test \"${s%% *}\" = \"$sum\" || fail the copy in \"$d\" differs, is there space left?; "
    "chmod 700 \"$t\"; test -x \"$t\" || fail programs may not be executed in \"$d\"; "
    "mv -f \"$t\" \"$f\" || fail cannot rename in \"$d\"; "
    "exec \"$f\"";

constexpr std::string_view kClean =
    "if test -h \"$d\" || test -d \"$d\"; then enter; rm -f ./agent-* ./upload.* || fail cannot remove agents from "
    "\"$d\"; "
    "fi; echo runjob-cache-cleaned";

/// The rest of the first whole line of `text` that begins with `word`.
std::optional<std::string> line_after(std::string_view text, std::string_view word) {
  std::size_t at = text.find(word);
  while (at != std::string_view::npos && at != 0 && text[at - 1] != '\n') at = text.find(word, at + 1);
  if (at == std::string_view::npos) return std::nullopt;
  const std::size_t end = text.find('\n', at);
  if (end == std::string_view::npos) return std::nullopt;
  return std::string(text.substr(at + word.size(), end - at - word.size()));
}

std::string printable(std::string_view text) {
  constexpr std::size_t kQuoted = 400;
  std::string result(text.substr(0, kQuoted));
  std::replace_if(
      result.begin(), result.end(), [](unsigned char c) { return c < ' ' || c == 0x7f; }, ' ');
  return result;
}

constexpr char kNoAnswer[] = "the connection was closed before the agent answered";

/// Reads more of the channel to the end of `received`.
/// Errors  Error(kConnect) at its end, with the best known reason, or else `otherwise`.
asio::awaitable<void> receive_more(Channel& channel, std::string& received, const char* otherwise = kNoAnswer) {
  std::array<char, 4096> buffer;
  const std::size_t bytes = co_await channel.read_some(asio::buffer(buffer));
  received.append(buffer.data(), bytes);
  if (bytes != 0 && received.size() <= kMaxNoiseBytes) co_return;
  std::string said = channel.last_message();
  if (said.empty()) said = printable(received);
  if (said.empty()) said = otherwise;
  throw Error(Errc::kConnect, said);
}

/// "3.17" or later, whatever a distribution has added: the first with getrandom(2) and memfd_create(2).
bool is_new_enough(std::string_view release) {
  constexpr std::array<int, 2> kOldest = {3, 17};
  std::array<int, 2> version{};
  for (int& number : version) {
    const auto [end, error] = std::from_chars(release.data(), release.data() + release.size(), number);
    if (error != std::errc()) return true;  // it does not say
    release.remove_prefix(static_cast<std::size_t>(end - release.data()));
    if (!release.empty()) release.remove_prefix(1);
  }
  return version >= kOldest;
}

/// `system`: the name of a system, its machine, and its kernel's release.
void check_machine(const AgentFile& agent, const std::string& system) {
  const std::string needed = "Linux " + agent.machine;
  const std::size_t end = system.rfind(' ');
  const std::string kind = system.substr(0, end);
  if (kind != needed)
    throw Error(
        Errc::kConnect,
        fmt::format("this host is a {} system, and the agent is for {}; runjob starts hosts of its own kind only",
                    printable(kind), needed));
  const std::string release = end == std::string::npos ? "" : system.substr(end + 1);
  if (!is_new_enough(release))
    throw Error(Errc::kConnect,
                fmt::format("this host's Linux {} is too old; runjob needs 3.17 or newer there", printable(release)));
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

std::string bootstrap_command(const AgentFile& agent) {
  return for_login_shell(fmt::format("{}{}", kEnterFolder, kStart), agent.build_id);
}

std::string clean_cache_command() {
  return for_login_shell(fmt::format("{}{}", kEnterFolder, kClean), "");
}

asio::awaitable<ReadyChannel> bootstrap_agent(std::unique_ptr<Channel> channel, AgentFile agent) {
  std::string received;
  bool uploaded = false;
  while (received.find(kMagic.substr(0, kMagic.size() - 2)) == std::string::npos) {
    if (const auto reason = line_after(received, kFailed)) throw Error(Errc::kConnect, printable(*reason));
    const auto system = uploaded ? std::nullopt : line_after(received, kMissing);
    if (system) {
      check_machine(agent, *system);
      co_await upload(*channel, agent, received);
      uploaded = true;
      continue;
    }
    co_await receive_more(*channel, received);
  }
  co_return ReadyChannel{std::move(channel), std::move(received)};
}

asio::awaitable<void> cache_cleaned(std::unique_ptr<Channel> channel) {
  std::string received;
  while (!line_after(received, kCleaned)) {
    if (const auto reason = line_after(received, kFailed)) throw Error(Errc::kConnect, printable(*reason));
    co_await receive_more(*channel, received, "the connection was closed before the cache was cleaned");
  }
}

}  // namespace runjob
