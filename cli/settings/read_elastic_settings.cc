#include "cli/settings/read_elastic_settings.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/parse.hpp"
#include "base/screen_text.hpp"
#include "cli/options/check_paths.hpp"
#include "hostfile/merge_hosts.hpp"

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
  const std::string place = value->place + " takes two numbers of seconds";
  const auto lower = parse_integer(value->text.substr(0, end), place, 1, kLongest);
  const auto upper = parse_integer(value->text.substr(end + 1), place, 1, kLongest);
  if (lower > upper)
    throw Error(Errc::kUsage,
                fmt::format("{}: {} is over {}; write the smaller number first", value->place, lower, upper));
  return Cooldown{std::chrono::seconds(lower), std::chrono::seconds(upper)};
}

void refuse_without_elastic(const SettingReader& reader) {
  // A configuration file that --print-config has written names the defaults, which change nothing. A variable may be
  // set for all jobs of a user, as for horovodrun, which reads HOROVOD_ELASTIC_TIMEOUT in elastic jobs only.
  const std::pair<const char*, const char*> options[] = {{"max-np", ""},         {"elastic-timeout", "600"},
                                                         {"reset-limit", ""},    {"blacklist-cooldown-range", ""},
                                                         {"rank-restarts", "3"}, {"spares", "0"},
                                                         {"commit-dir", ""},     {"commit-interval", "10m"}};
  for (const auto& [option, default_text] : options) {
    const auto value = reader.find(option);
    if (value && value->text != default_text && !value->place.starts_with("environment "))
      throw Error(Errc::kUsage, fmt::format("{}: needs --min-np, which makes the job elastic", value->place));
  }
}

}  // namespace

int ElasticSize::first_ranks(int slots) const {
  const int most = max_ranks.value_or(kMaxRanks);
  const int all = std::max(1, std::min(slots - spares, most));
  if (!ranks) return all;
  return as_horovod ? std::max(*ranks, all) : *ranks;
}

std::optional<ElasticSize> read_elastic_size(const SettingReader& reader, std::optional<int> ranks, bool as_horovod) {
  const auto min_ranks = read_integer(reader, "min-np", 1, kMaxRanks);
  const bool discovers = reader.find("host-discovery-script").has_value();
  if (const auto slots = reader.find("slots-per-host"); slots && !discovers && slots->text != "1")
    throw Error(Errc::kUsage, fmt::format("{}: needs --host-discovery-script, whose hosts it is for", slots->place));
  if (!min_ranks && !discovers) {
    refuse_without_elastic(reader);
    return std::nullopt;
  }
  ElasticSize size;
  size.ranks = ranks;
  size.max_ranks = read_integer(reader, "max-np", 1, kMaxRanks);
  size.min_ranks = min_ranks.value_or(ranks.value_or(1));
  size.spares = read_integer(reader, "spares", 0, kMaxRanks).value_or(0);
  size.as_horovod = as_horovod;
  if (size.max_ranks && size.min_ranks > *size.max_ranks)
    throw Error(Errc::kUsage, fmt::format("{}: {} is below the {} of --min-np; raise it, or lower --min-np",
                                          reader.find("max-np")->place, *size.max_ranks, size.min_ranks));
  return size;
}

std::optional<FirstHosts> read_first_hosts(const SettingReader& reader, const ElasticSize& size) {
  const auto script = reader.find("host-discovery-script");
  if (!script) return std::nullopt;
  if (script->text.find_first_not_of(" \t") == std::string::npos)
    throw Error(Errc::kUsage,
                fmt::format("{}: the command is empty; name a script that prints the hosts", script->place));
  FirstHosts wanted;
  wanted.script = script->text;
  wanted.place = script->place;
  wanted.slots_per_host = read_integer(reader, "slots-per-host", 1, kMaxSlots).value_or(1);
  wanted.slots = size.needed_slots();
  wanted.as_horovod = size.as_horovod;
  wanted.patience = reader.positive_duration("elastic-timeout", "wait").value_or(wanted.patience);
  return wanted;
}

ElasticSettings read_elastic_settings(const SettingReader& reader, const ElasticSize& size,
                                      const std::vector<Host>& hosts, const Allocation& allocation) {
  const int ranks = static_cast<int>(allocation.placements.size());
  ElasticSettings settings;
  settings.min_ranks = size.min_ranks;
  settings.max_ranks = size.max_ranks.value_or(size.as_horovod ? kMaxRanks : ranks);
  settings.spares = size.spares;
  settings.as_horovod = size.as_horovod;
  if (settings.min_ranks > ranks)
    throw Error(Errc::kUsage, fmt::format("{}: {} is over the {} that the job starts with; lower it, or raise -np",
                                          reader.find("min-np")->place, settings.min_ranks, counted(ranks, "rank")));
  if (settings.max_ranks < ranks)
    throw Error(Errc::kUsage, fmt::format("{}: {} is below the {} that the job starts with; raise it, or lower -np",
                                          reader.find("max-np")->place, settings.max_ranks, counted(ranks, "rank")));
  if (const int slots = count_slots(hosts); size.spares > 0 && slots < ranks + size.spares)
    throw Error(Errc::kUsage, fmt::format("{}: {} and {} need {}, and the hosts have {}; name more slots, or lower -np",
                                          reader.find("spares")->place, counted(ranks, "rank"),
                                          counted(size.spares, "spare"), counted(ranks + size.spares, "slot"), slots));
  settings.timeout = reader.positive_duration("elastic-timeout", "wait").value_or(settings.timeout);
  settings.reset_limit = read_integer(reader, "reset-limit", 0, std::numeric_limits<int>::max());
  settings.rank_restarts =
      read_integer(reader, "rank-restarts", 0, kMaxRanks).value_or(size.as_horovod ? 0 : settings.rank_restarts);
  settings.cooldown = read_cooldown(reader);
  if (const auto wanted = read_first_hosts(reader, size)) {
    settings.discovery_script = wanted->script;
    settings.slots_per_host = wanted->slots_per_host;
  } else if (const auto file = reader.path("hostfile"); file && !reader.find("hosts")) {
    settings.hostfile = file->text;
  }
  for (const Host& host : hosts) {
    const auto& used = allocation.hosts;
    if (std::none_of(used.begin(), used.end(), [&host](const Host& each) { return is_same_host(each, host); }))
      settings.more_hosts.push_back(host);
  }
  return settings;
}

std::map<std::string, std::string> read_commit_variables(const SettingReader& reader) {
  const auto interval = reader.duration("commit-interval");
  const auto folder = reader.path("commit-dir");
  if (!folder) {
    const auto given = reader.find("commit-interval");
    if (given && given->text != "10m" && !given->place.starts_with("environment "))
      throw Error(Errc::kUsage, fmt::format("{}: needs --commit-dir, the folder of the commits", given->place));
    return {};
  }
  check_own_directory(folder->text, folder->place);
  std::map<std::string, std::string> variables{{"COMMIT_DIR", folder->text}};
  if (interval) variables["COMMIT_INTERVAL"] = fmt::format("{}", std::chrono::duration<double>(*interval).count());
  return variables;
}

}  // namespace runjob
