#include "cli/config_file.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/edit_distance.hpp"
#include "base/error.hpp"
#include "base/parse.hpp"
#include "cli/option_table.hpp"
#include "cli/toml_config.hpp"
#include "cli/yaml_config.hpp"

namespace runjob {
namespace {

/// A key of horovodrun's files that does nothing, for the reason that its option does nothing.
struct KeyWithoutEffect {
  std::string_view key, option;
};

/// hide_timestamp is in horovodrun's own sample.
constexpr KeyWithoutEffect kWithoutEffect[] = {{"controller", "mpi"},
                                               {"params.torus_allreduce", "torus-allreduce"},
                                               {"autotune.enabled", "autotune"},
                                               {"autotune.log_file", "autotune-log-file"},
                                               {"autotune.warmup_samples", "autotune-warmup-samples"},
                                               {"autotune.steps_per_sample", "autotune-steps-per-sample"},
                                               {"autotune.bayes_opt_max_samples", "autotune-bayes-opt-max-samples"},
                                               {"autotune.gaussian_process_noise", "autotune-gaussian-process-noise"},
                                               {"library_options.mpi_threads_disable", "mpi-threads-disable"},
                                               {"library_options.num_nccl_streams", "num-nccl-streams"},
                                               {"library_options.thread_affinity", "thread-affinity"},
                                               {"library_options.mpi_args", "mpi-args"},
                                               {"logging.with_timestamp", "log-with-timestamp"},
                                               {"logging.hide_timestamp", "log-hide-timestamp"}};

/// Why a key does nothing; nothing for one that is not of these.
std::optional<std::string_view> no_effect_of_key(std::string_view key) {
  const auto has_key = [&](const KeyWithoutEffect& each) { return each.key == key; };
  const auto found = std::find_if(std::begin(kWithoutEffect), std::end(kWithoutEffect), has_key);
  if (found == std::end(kWithoutEffect)) return std::nullopt;
  for (const Option& option : option_table()) {
    if (option.name == found->option) return option.no_effect;
  }
  throw Error(Errc::kBug, fmt::format("the key {} has no option", key));
}

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

std::vector<ConfigEntry> read_entries(const std::string& text, const std::string& path) {
  if (ends_with(path, ".yaml") || ends_with(path, ".yml")) return yaml_entries(text, path);
  return toml_entries(text, ends_with(path, ".ini") ? TomlDialect::kIni : TomlDialect::kToml, path);
}

bool may_be_in_a_file(const Option& option) {
  return !option.is_action && option.name != "config-file";
}

const Option* option_of_key(const std::string& key) {
  std::string dashed = key;
  std::replace(dashed.begin(), dashed.end(), '_', '-');
  for (const Option& option : option_table()) {
    if (!may_be_in_a_file(option)) continue;
    if (option.name == dashed || (!option.horovodrun_key.empty() && option.horovodrun_key == key)) return &option;
  }
  return nullptr;
}

[[noreturn]] void refuse_key(const std::string& key, const std::string& path) {
  std::vector<std::string> known;
  for (const KeyWithoutEffect& each : kWithoutEffect) known.emplace_back(each.key);
  for (const Option& option : option_table()) {
    if (!may_be_in_a_file(option)) continue;
    known.emplace_back(option.name);
    if (!option.horovodrun_key.empty()) known.emplace_back(option.horovodrun_key);
  }
  const std::string meant = nearest(key, known);
  throw Error(Errc::kUsage, fmt::format("file {}: unknown key '{}'; {}", path, key,
                                        meant.empty() ? "keys are the long names of options, as in num-proc"
                                                      : fmt::format("did you mean '{}'?", meant)));
}

/// A list where one value is wanted is a mistake, but for hosts, where it reads well.
std::vector<std::string> values_for(const Option& option, const ConfigEntry& entry, const std::string& path) {
  if (option.repeatable || entry.values.size() == 1) return entry.values;
  if (option.name == "hosts") return {fmt::format("{}", fmt::join(entry.values, ","))};
  throw Error(Errc::kUsage, fmt::format("file {}: {} takes one value, found {}; put a text with blanks in quotes", path,
                                        entry.key, entry.values.size()));
}

/// horovodrun's files say whether to look for stalls, its option that one should not.
ConfigEntry as_option(ConfigEntry entry, const std::string& path) {
  if (entry.key != "stall_check.enabled" || entry.values.size() != 1) return entry;
  const bool enabled = parse_bool(entry.values.front(), fmt::format("file {}, {}", path, entry.key));
  return {"no-stall-check", {enabled ? "false" : "true"}};
}

}  // namespace

Settings config_file_settings(const std::string& text, const std::string& path, Warnings& warnings) {
  Settings settings;
  for (ConfigEntry& given : read_entries(text, path)) {
    const ConfigEntry entry = as_option(std::move(given), path);
    if (const auto why = no_effect_of_key(entry.key)) {
      warnings.push_back(fmt::format("file {}: {} has no effect: {}", path, entry.key, *why));
      continue;
    }
    const Option* option = option_of_key(entry.key);
    if (option == nullptr) refuse_key(entry.key, path);
    const Setting setting{values_for(*option, entry, path), "file " + path};
    if (!settings.emplace(option->name, setting).second)
      throw Error(Errc::kUsage, fmt::format("file {}: {} is given twice; keep one", path, option->name));
  }
  return settings;
}

}  // namespace runjob
