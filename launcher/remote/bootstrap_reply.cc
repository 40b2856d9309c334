#include "launcher/remote/bootstrap_reply.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include <fmt/format.h>

#include "base/error.hpp"
#include "launcher/channel/frame.hpp"

namespace runjob {
namespace {

constexpr std::string_view kMissing = "runjob-agent-missing ";
constexpr std::string_view kFailed = "runjob-agent-failed ";
constexpr std::string_view kCleaned = "runjob-cache-cleaned";

/// The rest of the first whole line of `text` that begins with `word`.
std::optional<std::string_view> line_after(std::string_view text, std::string_view word) {
  std::size_t at = text.find(word);
  while (at != std::string_view::npos && at != 0 && text[at - 1] != '\n') at = text.find(word, at + 1);
  if (at == std::string_view::npos) return std::nullopt;
  const std::size_t end = text.find('\n', at);
  if (end == std::string_view::npos) return std::nullopt;
  return text.substr(at + word.size(), end - at - word.size());
}

/// "3.17" or later, whatever a distribution has added: the first with getrandom(2) and memfd_create(2).
bool is_new_enough(std::string_view release) {
  constexpr std::array<int, 2> kOldest = {3, 17};
  std::array<int, 2> version{};
  for (int& number : version) {
    const auto [end, error] = std::from_chars(release.data(), release.data() + release.size(), number);
    if (error != std::errc()) return true;  // the number is not there
    release.remove_prefix(static_cast<std::size_t>(end - release.data()));
    if (!release.empty()) release.remove_prefix(1);
  }
  return version >= kOldest;
}

}  // namespace

BootstrapReply read_bootstrap_reply(std::string_view received) {
  using Kind = BootstrapReply::Kind;
  // Without the version and the line's end: another version is an error of the channel.
  if (received.find(kMagic.substr(0, kMagic.size() - 2)) != std::string_view::npos) return {Kind::kAgent};
  if (const auto reason = line_after(received, kFailed)) return {Kind::kFailed, quoted(*reason)};
  if (line_after(received, kCleaned)) return {Kind::kCleaned};
  if (const auto system = line_after(received, kMissing)) return {Kind::kMissing, std::string(*system)};
  return {};
}

void check_system(std::string_view system, const std::string& machine) {
  const std::string needed = "Linux " + machine;
  const std::size_t end = system.rfind(' ');
  const std::string_view kind = system.substr(0, end);
  if (kind != needed)
    throw Error(
        Errc::kConnect,
        fmt::format("this host is a {} system, and the agent is for {}; runjob starts hosts of its own kind only",
                    quoted(kind), needed));
  const std::string_view release = end == std::string_view::npos ? "" : system.substr(end + 1);
  if (!is_new_enough(release))
    throw Error(Errc::kConnect,
                fmt::format("this host's Linux {} is too old; runjob needs 3.17 or newer there", quoted(release)));
}

std::string quoted(std::string_view received) {
  constexpr std::size_t kQuoted = 400;
  std::string result(received.substr(0, kQuoted));
  std::replace_if(
      result.begin(), result.end(), [](unsigned char c) { return c < ' ' || c == 0x7f; }, ' ');
  return result;
}

}  // namespace runjob
