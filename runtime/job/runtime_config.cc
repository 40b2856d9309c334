#include "runtime/job/runtime_config.hpp"

#include <algorithm>
#include <limits>
#include <string_view>

#include <fmt/format.h>

#include "base/edit_distance.hpp"
#include "base/error.hpp"
#include "base/ignored_variables.hpp"
#include "base/parse.hpp"

namespace runjob::runtime {
namespace {

constexpr std::string_view kPrefix = "RUNJOB_", kAliasPrefix = "HOROVOD_";

/// The names that the runtime reads, without their prefix.
constexpr std::string_view kRead[] = {
    "RENDEZVOUS",
    "JOB_KEY_FILE",
    "RANK",
    "START_TIMEOUT",
    "GLOO_TIMEOUT_SECONDS",
    "GLOO_IFACE",
    "TIMELINE",
    "SIZE",
    "LOG_LEVEL",
    "LOG_HIDE_TIME",
    "TIMELINE_MARK_CYCLES",
    "ADDRESS",
    "SHARED_MEMORY",
    "CACHE_CAPACITY",
    "STALL_CHECK_DISABLE",
    "STALL_CHECK_TIME_SECONDS",
    "STALL_SHUTDOWN_TIME_SECONDS",
    "CMA",
    "HIERARCHICAL_ALLREDUCE",
    "HIERARCHICAL_ALLGATHER",
    "CPU_OPERATIONS",
    "TIMELINE_ALL_RANKS",
    "TIMELINE_MAX_MB",
    "DYNAMIC_PROCESS_SETS",
    "FUSION_THRESHOLD",
    "DISABLE_GROUP_FUSION",
    "CYCLE_TIME",
    "BUCKET_MB",
    "AUTOTUNE",
    "AUTOTUNE_LOG",
    "AUTOTUNE_WARMUP_SAMPLES",
    "AUTOTUNE_STEPS_PER_SAMPLE",
    "AUTOTUNE_BAYES_OPT_MAX_SAMPLES",
    "ENCRYPT_DATA",
    "NCCL_UNENCRYPTED",
    "ELASTIC",
    "PROCESS_NUMBER",
};

struct Variable {
  std::string name;  ///< as it was set, for messages
  std::string value;
};

std::optional<Variable> find(const Environment& environment, std::string_view name) {
  for (const std::string_view prefix : {kPrefix, kAliasPrefix}) {
    std::string full = fmt::format("{}{}", prefix, name);
    const auto found = environment.find(full);
    if (found != environment.end() && !found->second.empty()) return Variable{std::move(full), found->second};
  }
  return std::nullopt;
}

/// Warns of unknown names with runjob's prefix that differ from a known name in one or two letters.
void warn_misspelt(const Environment& environment, std::vector<std::string>& warnings) {
  constexpr int kTypo = 2;
  for (const auto& [name, value] : environment) {
    if (!std::string_view(name).starts_with(kPrefix)) continue;
    const std::string_view rest = std::string_view(name).substr(kPrefix.size());
    for (const std::string_view known : kRead) {
      const int distance = edit_distance(rest, known);
      if (distance > 0 && distance <= kTypo && known.size() > 4) {
        warnings.push_back(fmt::format("{} is not a variable of runjob; is {}{} meant?", name, kPrefix, known));
      }
    }
  }
}

void read_place(const Environment& environment, RuntimeConfig& config) {
  constexpr int kMost = std::numeric_limits<int>::max();
  if (const auto found = find(environment, "RENDEZVOUS")) config.rendezvous = found->value;
  if (const auto found = find(environment, "JOB_KEY_FILE")) config.job_key_file = found->value;
  const auto rank = find(environment, "RANK");
  if (config.rendezvous) {
    if (!rank) throw Error(Errc::kUsage, "RUNJOB_RENDEZVOUS is set, but RUNJOB_RANK is not; the launcher sets both");
    config.rank = static_cast<int>(parse_integer(rank->value, rank->name, 0, kMost - 1));
    const auto elastic = find(environment, "ELASTIC"), number = find(environment, "PROCESS_NUMBER");
    config.elastic = elastic && parse_bool(elastic->value, elastic->name) && number;
    if (config.elastic) config.rank = static_cast<int>(parse_integer(number->value, number->name, 0, kMost - 1));
    return;
  }
  config.launcher = read_foreign_launcher(environment);
  // With a launcher of runjob's, that one warns.
  const std::string ignored = config.launcher.rank == 0 ? ignored_variables_warning(environment) : "";
  if (!ignored.empty()) config.warnings.push_back(ignored);
  if (!config.launcher.warning.empty()) config.warnings.push_back(config.launcher.warning);
  if (config.launcher.store != ForeignLauncher::Store::kNone) return;
  const auto size = find(environment, "SIZE");
  if (size && parse_integer(size->value, size->name, 1, kMost) > 1) {
    config.warnings.push_back(
        fmt::format("{} is {}, but RUNJOB_RENDEZVOUS is not set: this process is a job of its own, of size 1",
                    size->name, size->value));
  }
}

StallLimits read_stall_limits(const Environment& environment) {
  StallLimits limits;
  const auto disable = find(environment, "STALL_CHECK_DISABLE");
  if (const auto found = find(environment, "STALL_CHECK_TIME_SECONDS"))
    limits.warning = parse_duration(found->value, found->name);
  if (const auto found = find(environment, "STALL_SHUTDOWN_TIME_SECONDS"))
    limits.failure = parse_duration(found->value, found->name);
  return disable && parse_bool(disable->value, disable->name) ? StallLimits{{}, {}} : limits;
}

void read_timeline(const Environment& environment, RuntimeConfig& config) {
  const auto timeline = find(environment, "TIMELINE");
  if (timeline && timeline->value != "DYNAMIC") config.timeline = timeline->value;
  if (const auto found = find(environment, "TIMELINE_MARK_CYCLES"))
    config.timeline_mark_cycles = parse_bool(found->value, found->name);
  if (const auto found = find(environment, "TIMELINE_ALL_RANKS"))
    config.timeline_all_ranks = parse_bool(found->value, found->name);
  if (const auto found = find(environment, "TIMELINE_MAX_MB")) {
    constexpr std::int64_t kMost = 1 << 20;
    config.timeline_most_bytes = static_cast<std::uint64_t>(parse_integer(found->value, found->name, 1, kMost)) << 20;
  }
}

void read_fusion(const Environment& environment, RuntimeConfig& config) {
  if (const auto found = find(environment, "FUSION_THRESHOLD"))
    config.fusion.threshold_bytes = static_cast<std::size_t>(parse_bytes(found->value, found->name));
  if (const auto found = find(environment, "DISABLE_GROUP_FUSION"))
    config.fusion.mixes_groups = !parse_bool(found->value, found->name);
  if (const auto found = find(environment, "CYCLE_TIME"))
    config.cycle_time = parse_milliseconds(found->value, found->name);
}

void read_buckets(const Environment& environment, RuntimeConfig& config) {
  constexpr std::int64_t kMostMib = 1 << 20, kMost = std::numeric_limits<std::int32_t>::max();
  if (const auto found = find(environment, "BUCKET_MB")) {
    config.given_bucket_bytes = static_cast<std::uint64_t>(parse_integer(found->value, found->name, 0, kMostMib)) << 20;
    if (*config.given_bucket_bytes == 0) {
      throw Error(Errc::kUsage, fmt::format("{}: '{}' is not a size above zero; RUNJOB_FUSION_THRESHOLD=0 reduces each "
                                            "gradient alone",
                                            found->name, found->value));
    }
  }
  AutotuneSettings& autotune = config.autotune;
  const auto is_on = find(environment, "AUTOTUNE");
  autotune.is_on = is_on && parse_bool(is_on->value, is_on->name);
  if (!autotune.is_on) return;
  if (const auto found = find(environment, "AUTOTUNE_LOG")) autotune.log = found->value;
  const auto read = [&](std::string_view name, std::int64_t low, std::int64_t& value) {
    if (const auto found = find(environment, name)) value = parse_integer(found->value, found->name, low, kMost);
  };
  read("AUTOTUNE_WARMUP_SAMPLES", 0, autotune.warmup_samples);
  read("AUTOTUNE_STEPS_PER_SAMPLE", 1, autotune.steps_per_sample);
  read("AUTOTUNE_BAYES_OPT_MAX_SAMPLES", 0, autotune.most_samples);
}

void read_hierarchy(const Environment& environment, RuntimeConfig& config) {
  if (const auto found = find(environment, "HIERARCHICAL_ALLREDUCE"))
    config.hierarchical_allreduce = parse_bool(found->value, found->name);
  if (const auto found = find(environment, "HIERARCHICAL_ALLGATHER"))
    config.hierarchical_allgather = parse_bool(found->value, found->name);
  // Horovod's other values, "mpi" and "ccl", name what is not here; the launcher warns of them.
  if (const auto found = find(environment, "CPU_OPERATIONS")) config.gloo = found->value == "gloo";
}

}  // namespace

std::uint64_t RuntimeConfig::bucket_bytes() const {
  return std::min<std::uint64_t>(given_bucket_bytes.value_or(kDefaultBucketBytes), fusion.threshold_bytes);
}

RuntimeConfig read_runtime_config(const Environment& environment) {
  RuntimeConfig config;
  read_place(environment, config);
  if (const auto found = find(environment, "START_TIMEOUT")) {
    const auto timeout = parse_duration(found->value, found->name);
    if (timeout.count() > 0) config.start_timeout = timeout;  // 0 means the default, as for horovodrun
  }
  if (const auto found = find(environment, "ENCRYPT_DATA")) {
    config.encrypt_data = parse_bool(found->value, found->name);
  }
  if (const auto found = find(environment, "NCCL_UNENCRYPTED")) {
    config.nccl_unencrypted = parse_bool(found->value, found->name);
  }
  if (const auto found = find(environment, "SHARED_MEMORY")) {
    config.shared_memory = parse_bool(found->value, found->name);
  }
  if (const auto found = find(environment, "CMA")) config.cma = parse_bool(found->value, found->name);
  read_hierarchy(environment, config);
  if (const auto found = find(environment, "GLOO_TIMEOUT_SECONDS")) {
    config.gloo_timeout = parse_duration(found->value, found->name);
    if (config.gloo_timeout.count() == 0) {  // Gloo takes 0 as "no limit"
      throw Error(Errc::kUsage, fmt::format("{}: '{}' is not a time above zero", found->name, found->value));
    }
  }
  if (const auto found = find(environment, "GLOO_IFACE")) config.interface = found->value;
  if (const auto found = find(environment, "ADDRESS")) config.address = found->value;
  if (const auto found = find(environment, "CACHE_CAPACITY")) {
    constexpr std::int64_t kMost = 1 << 20;
    config.cache_capacity = static_cast<std::uint32_t>(parse_integer(found->value, found->name, 0, kMost));
  }
  read_fusion(environment, config);
  read_buckets(environment, config);
  config.stall_limits = read_stall_limits(environment);
  if (const auto found = find(environment, "DYNAMIC_PROCESS_SETS")) {
    config.dynamic_process_sets = parse_bool(found->value, found->name);
  }
  read_timeline(environment, config);
  if (const auto found = find(environment, "LOG_LEVEL")) {
    config.log_level = log::parse_level(found->value, found->name);
  }
  if (const auto found = find(environment, "LOG_HIDE_TIME"))
    config.log_hides_time = parse_bool(found->value, found->name);
  warn_misspelt(environment, config.warnings);
  return config;
}

}  // namespace runjob::runtime
