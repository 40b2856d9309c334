#include "cli/settings/rank_variables.hpp"

#include <algorithm>
#include <cctype>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/parse.hpp"

namespace runjob {
namespace {

void check_switch(std::string_view text, std::string_view place) {
  parse_bool(text, place);
}

void check_size(std::string_view text, std::string_view place) {
  parse_bytes(text, place);
}

void check_time(std::string_view text, std::string_view place) {
  parse_duration(text, place);
}

void check_milliseconds(std::string_view text, std::string_view place) {
  parse_milliseconds(text, place);
}

void check_limit(std::string_view text, std::string_view place) {
  if (parse_duration(text, place).count() == 0)
    throw Error(Errc::kUsage, fmt::format("{}: '{}' is not a time above zero", place, text));
}

void check_entries(std::string_view text, std::string_view place) {
  parse_integer(text, place, 0, 1 << 20);
}

void check_whole_number(std::string_view text, std::string_view place) {
  using Int = std::numeric_limits<std::int32_t>;
  parse_integer(text, place, Int::min(), Int::max());
}

void check_mebibytes(std::string_view text, std::string_view place) {
  parse_integer(text, place, 1, 1 << 20);
}

void check_level(std::string_view text, std::string_view place) {
  log::parse_level(text, place);
}

/// Refuses a value that is none of `words`, in any case.
void check_word(std::string_view text, std::string_view place, std::initializer_list<std::string_view> words) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  if (std::find(words.begin(), words.end(), lower) != words.end()) return;
  throw Error(Errc::kUsage, fmt::format("{}: '{}' is not {}", place, text, fmt::join(words, " or ")));
}

void check_controller(std::string_view text, std::string_view place) {
  check_word(text, place, {"gloo", "mpi"});
}

void check_operations(std::string_view text, std::string_view place) {
  check_word(text, place, {"gloo", "mpi", "ccl"});
}

struct CheckedVariable {
  std::string_view name;  // without its prefix
  void (*check)(std::string_view text, std::string_view place);
};

constexpr CheckedVariable kChecks[] = {
    {"FUSION_THRESHOLD", check_size},
    {"DISABLE_GROUP_FUSION", check_switch},
    {"DYNAMIC_PROCESS_SETS", check_switch},
    {"SHARED_MEMORY", check_switch},
    {"CMA", check_switch},
    {"CYCLE_TIME", check_milliseconds},
    {"CACHE_CAPACITY", check_entries},
    {"BUCKET_MB", check_bucket_mebibytes},
    {"AUTOTUNE", check_switch},
    {"AUTOTUNE_WARMUP_SAMPLES", check_whole_number},
    {"AUTOTUNE_STEPS_PER_SAMPLE", check_whole_number},
    {"AUTOTUNE_BAYES_OPT_MAX_SAMPLES", check_whole_number},
    {"NUM_NCCL_STREAMS", check_entries},
    {"ENCRYPT_DATA", check_switch},
    {"NCCL_UNENCRYPTED", check_switch},
    {"HIERARCHICAL_ALLREDUCE", check_switch},
    {"HIERARCHICAL_ALLGATHER", check_switch},
    {"START_TIMEOUT", check_time},
    {"GLOO_TIMEOUT_SECONDS", check_limit},
    {"STALL_CHECK_DISABLE", check_switch},
    {"STALL_CHECK_TIME_SECONDS", check_time},
    {"STALL_SHUTDOWN_TIME_SECONDS", check_time},
    {"TIMELINE_MARK_CYCLES", check_switch},
    {"TIMELINE_ALL_RANKS", check_switch},
    {"TIMELINE_MAX_MB", check_mebibytes},
    {"LOG_LEVEL", check_level},
    {"LOG_HIDE_TIME", check_switch},
    {"CONTROLLER", check_controller},
    {"CPU_OPERATIONS", check_operations},
    {"TORCH_BACKEND", check_torch_backend},
};

struct RankValue {
  std::string value;
  std::string place;
};

std::optional<RankValue> exported_value(const std::string& variable, const std::vector<ExportedVariables>& exported) {
  for (const ExportedVariables& source : exported) {
    if (const auto found = source.variables.find(variable); found != source.variables.end())
      return RankValue{found->second, fmt::format("{} {}", source.option, variable)};
  }
  return std::nullopt;
}

std::optional<RankValue> inherited_value(const std::string& variable, const Environment& environment) {
  const auto found = environment.find(variable);
  if (found == environment.end()) return std::nullopt;
  return RankValue{found->second, fmt::format("environment {}", variable)};
}

}  // namespace

void check_torch_backend(std::string_view text, std::string_view place) {
  check_word(text, place, {"runjob", "gloo"});
}

void check_bucket_mebibytes(std::string_view text, std::string_view place) {
  if (parse_integer(text, place, 0, 1 << 20) > 0) return;
  throw Error(Errc::kUsage,
              fmt::format("{}: '{}' is not a size above zero; --fusion-threshold-mb 0 reduces each gradient alone",
                          place, text));
}

void check_rank_variables(const Environment& environment, const std::vector<ExportedVariables>& exported,
                          const std::map<std::string, std::string>& given) {
  for (const CheckedVariable& each : kChecks) {
    for (const char* prefix : {"RUNJOB_", "HOROVOD_"}) {
      const std::string variable = fmt::format("{}{}", prefix, each.name);
      auto found = exported_value(variable, exported);
      if (!found && !given.contains(std::string(each.name))) found = inherited_value(variable, environment);
      if (!found || found->value.empty()) continue;
      each.check(found->value, found->place);
      break;  // the first prefix wins
    }
  }
}

}  // namespace runjob
