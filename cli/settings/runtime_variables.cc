#include "cli/settings/runtime_variables.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <string_view>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/parse.hpp"
#include "cli/options/option_table.hpp"
#include "cli/settings/rank_variables.hpp"

namespace runjob {
namespace {

using Variables = std::map<std::string, std::string>;

/// Reads --hierarchical-X and --no-hierarchical-X for the ranks' runtime, which has its own default without them.
void read_hierarchy(const SettingReader& reader, const std::string& name, const char* variable, Variables& result) {
  const bool is_off = reader.flag("no-" + name);
  const auto value = reader.find(name);
  if (is_off && value && reader.flag(name))
    throw Error(Errc::kUsage,
                fmt::format("{} contradicts {}; keep one", reader.find("no-" + name)->place, value->place));
  if (!is_off && !value) return;
  result[variable] = !is_off && reader.flag(name) ? "1" : "0";
}

/// The ranks' threshold is in bytes, horovodrun's option in MiB.
void read_fusion(const SettingReader& reader, Variables& result) {
  constexpr std::int64_t kMostMib = std::int64_t{1} << 40;
  if (const auto threshold = reader.find("fusion-threshold-mb"))
    result["FUSION_THRESHOLD"] = std::to_string(parse_integer(threshold->text, threshold->place, 0, kMostMib) << 20);
  if (const auto time = reader.find("cycle-time-ms")) {
    parse_milliseconds(time->text, time->place);
    result["CYCLE_TIME"] = time->text;
  }
}

/// Without --autotune, its other options do nothing, and their values only have to be numbers, as for horovodrun.
void read_buckets(const SettingReader& reader, Variables& result) {
  if (const auto size = reader.find("bucket-mb")) {
    check_bucket_mebibytes(size->text, size->place);
    result["BUCKET_MB"] = size->text;
  }
  const bool is_on = reader.flag("autotune");
  if (reader.find("autotune")) result["AUTOTUNE"] = is_on ? "1" : "0";
  if (is_on) {
    if (const auto file = reader.writable_file("autotune-log-file")) result["AUTOTUNE_LOG"] = *file;
  }
  const auto read = [&](std::string_view option, const char* variable, std::int64_t low) {
    const auto count = reader.find(option);
    if (!count) return;
    using Int = std::numeric_limits<std::int32_t>;
    parse_integer(count->text, count->place, is_on ? low : Int::min(), Int::max());
    result[variable] = count->text;
  };
  read("autotune-warmup-samples", "AUTOTUNE_WARMUP_SAMPLES", 0);
  read("autotune-steps-per-sample", "AUTOTUNE_STEPS_PER_SAMPLE", 1);
  read("autotune-bayes-opt-max-samples", "AUTOTUNE_BAYES_OPT_MAX_SAMPLES", 0);
}

}  // namespace

std::map<std::string, std::string> read_runtime_variables(const SettingReader& reader) {
  constexpr std::int64_t kMostCached = 1 << 20, kMostTimelineMb = 1 << 20;
  Variables result;
  const auto keep = [&](std::string_view option, const char* variable) {
    if (const auto value = reader.find(option)) result[variable] = value->text;
  };
  if (const auto file = reader.writable_file("timeline-filename")) result["TIMELINE"] = *file;
  if (reader.flag("timeline-mark-cycles")) result["TIMELINE_MARK_CYCLES"] = "1";
  if (reader.flag("timeline-all-ranks")) result["TIMELINE_ALL_RANKS"] = "1";
  if (const auto most = reader.find("timeline-max-mb")) {
    parse_integer(most->text, most->place, 1, kMostTimelineMb);
    keep("timeline-max-mb", "TIMELINE_MAX_MB");
  }
  if (reader.flag("no-stall-check")) result["STALL_CHECK_DISABLE"] = "1";
  if (reader.duration("stall-check-warning-time-seconds"))
    keep("stall-check-warning-time-seconds", "STALL_CHECK_TIME_SECONDS");
  if (reader.duration("stall-check-shutdown-time-seconds"))
    keep("stall-check-shutdown-time-seconds", "STALL_SHUTDOWN_TIME_SECONDS");
  if (reader.find("encrypt-data")) result["ENCRYPT_DATA"] = reader.flag("encrypt-data") ? "1" : "0";
  if (const auto backend = reader.find("torch-backend")) {
    check_torch_backend(backend->text, backend->place);
    keep("torch-backend", "TORCH_BACKEND");
  }
  if (reader.positive_duration("gloo-timeout-seconds", "exchange data"))
    keep("gloo-timeout-seconds", "GLOO_TIMEOUT_SECONDS");
  if (const auto capacity = reader.find("cache-capacity")) {
    parse_integer(capacity->text, capacity->place, 0, kMostCached);
    keep("cache-capacity", "CACHE_CAPACITY");
  }
  if (const auto level = reader.find("log-level")) {
    log::parse_level(level->text, level->place);
    keep("log-level", "LOG_LEVEL");
  }
  if (reader.find("log-hide-timestamp")) result["LOG_HIDE_TIME"] = reader.flag("log-hide-timestamp") ? "1" : "0";
  // Each rank then names its place and its backend.
  if (reader.flag("verbose") && !reader.find("log-level")) result["LOG_LEVEL"] = "INFO";
  read_fusion(reader, result);
  read_buckets(reader, result);
  read_hierarchy(reader, "hierarchical-allreduce", "HIERARCHICAL_ALLREDUCE", result);
  read_hierarchy(reader, "hierarchical-allgather", "HIERARCHICAL_ALLGATHER", result);
  return result;
}

std::vector<std::string> runtime_options(const Settings& settings) {
  constexpr std::string_view kOthers[] = {"start-timeout", "log-level", "log-hide-timestamp", "commit-dir",
                                          "commit-interval"};
  constexpr std::string_view kOfFrameworks[] = {"gloo", "tcp",
                                                "torch-backend"};  // they act, or name what holds without them
  const auto has = [](const auto& names, std::string_view name) {
    return std::find(std::begin(names), std::end(names), name) != std::end(names);
  };
  constexpr std::string_view kVariable = "environment ";
  std::vector<std::string> result;
  for (const auto& [name, setting] : settings) {
    const Option* option = find_option(name);
    const bool is_one = (option->group == OptionGroup::kCollectives && !has(kOfFrameworks, name)) || has(kOthers, name);
    const std::string place = place_of(name, setting);
    const std::string& value = setting.values.back();
    const bool is_default = value == option->default_text || (option->value.empty() && !parse_bool(value, place));
    if (!is_one || is_default || place.starts_with("environment HOROVOD_")) continue;
    result.push_back(place.starts_with(kVariable) ? place.substr(kVariable.size()) : place);
  }
  return result;
}

}  // namespace runjob
