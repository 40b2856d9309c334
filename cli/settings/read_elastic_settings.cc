#include "cli/settings/read_elastic_settings.hpp"

#include <limits>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/parse.hpp"
#include "hostfile/allocation.hpp"

namespace runjob {
namespace {

std::optional<int> read_integer(const SettingReader& reader, const char* option, int low, int high) {
  const auto value = reader.find(option);
  if (!value) return std::nullopt;
  return static_cast<int>(parse_integer(value->text, value->place, low, high));
}

/// Two numbers of seconds, separated by a blank or a comma.
std::optional<Cooldown> read_cooldown(const SettingReader& reader) {
  constexpr int kLongest = 3600;
  const auto value = reader.find("blacklist-cooldown-range");
  if (!value) return std::nullopt;
  const auto end = value->text.find_first_of(" ,");
  if (end == std::string::npos)
    throw Error(Errc::kUsage, fmt::format("{}: expected two numbers of seconds, such as 10 100, found '{}'",
                                          value->place, value->text));
  const auto lower = parse_integer(value->text.substr(0, end), value->place, 1, kLongest);
  const auto upper = parse_integer(value->text.substr(end + 1), value->place, 1, kLongest);
  if (lower > upper)
    throw Error(Errc::kUsage,
                fmt::format("{}: {} is over {}; write the smaller number first", value->place, lower, upper));
  return Cooldown{std::chrono::seconds(lower), std::chrono::seconds(upper)};
}

}  // namespace

std::optional<int> read_max_ranks(const SettingReader& reader) {
  return read_integer(reader, "max-np", 1, kMaxRanks);
}

std::optional<ElasticSettings> read_elastic_settings(const SettingReader& reader, int ranks) {
  const auto min_ranks = read_integer(reader, "min-np", 1, kMaxRanks);
  if (!min_ranks) {
    // A configuration file that --print-config has written names the defaults, which change nothing.
    const std::pair<const char*, const char*> options[] = {{"max-np", ""},
                                                           {"elastic-timeout", "600"},
                                                           {"reset-limit", ""},
                                                           {"blacklist-cooldown-range", ""},
                                                           {"rank-restarts", "3"}};
    for (const auto& [option, default_text] : options) {
      if (const auto value = reader.find(option); value && value->text != default_text)
        throw Error(Errc::kUsage, fmt::format("{}: needs --min-np, which makes the job elastic", value->place));
    }
    return std::nullopt;
  }
  ElasticSettings settings;
  settings.min_ranks = *min_ranks;
  settings.max_ranks = read_max_ranks(reader).value_or(ranks);
  if (settings.min_ranks > ranks)
    throw Error(Errc::kUsage, fmt::format("{}: {} is over the {} ranks that the job starts with",
                                          reader.find("min-np")->place, settings.min_ranks, ranks));
  if (settings.max_ranks < ranks)
    throw Error(Errc::kUsage, fmt::format("{}: {} is below the {} ranks that the job starts with",
                                          reader.find("max-np")->place, settings.max_ranks, ranks));
  settings.timeout = reader.positive_duration("elastic-timeout", "wait").value_or(settings.timeout);
  settings.reset_limit = read_integer(reader, "reset-limit", 0, std::numeric_limits<int>::max());
  settings.rank_restarts = read_integer(reader, "rank-restarts", 0, kMaxRanks).value_or(settings.rank_restarts);
  settings.cooldown = read_cooldown(reader);
  return settings;
}

}  // namespace runjob
