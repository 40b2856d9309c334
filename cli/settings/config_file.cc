#include "cli/settings/config_file.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/edit_distance.hpp"
#include "base/error.hpp"
#include "base/parse.hpp"
#include "cli/options/option_table.hpp"
#include "cli/settings/toml_config.hpp"
#include "cli/settings/yaml_config.hpp"

namespace runjob {
namespace {

bool is_yaml(const std::string& path) {
  return path.ends_with(".yaml") || path.ends_with(".yml");
}

std::vector<ConfigEntry> read_entries(const std::string& text, const std::string& path) {
  if (is_yaml(path)) return yaml_entries(text, path);
  return toml_entries(text, path.ends_with(".ini") ? TomlDialect::kIni : TomlDialect::kToml, path);
}

bool may_be_in_a_file(const Option& option) {
  return !option.is_action && option.name != "config-file" && option.stands_for.empty() &&
         option.group != OptionGroup::kMpirun;
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

/// "; did you mean 'num-proc'?" for a key that is none.
std::string hint_for(const std::string& key) {
  std::vector<std::string> known = {"controller"};
  for (const Option& option : option_table()) {
    if (!may_be_in_a_file(option)) continue;
    known.emplace_back(option.name);
    if (!option.horovodrun_key.empty()) known.emplace_back(option.horovodrun_key);
  }
  const std::string meant = nearest(key, known);
  return meant.empty() ? "keys are the long names of options, as in num-proc"
                       : fmt::format("did you mean '{}'?", meant);
}

/// A list where one value is wanted is a mistake, but for hosts, where it reads well.
std::vector<std::string> values_for(const Option& option, const ConfigEntry& entry, const std::string& path) {
  if (option.repeatable || entry.values.size() == 1) return entry.values;
  if (option.name == "hosts") return {fmt::format("{}", fmt::join(entry.values, ","))};
  throw Error(Errc::kUsage, fmt::format("file {}: {} takes one value, found {}; put a text with blanks in quotes", path,
                                        entry.key, entry.values.size()));
}

/// Translates keys of horovodrun's files that are not the value of one option: the key switches the stall check or the
/// log's times on and the option switches them off, and controllers have an option each.
ConfigEntry as_option(ConfigEntry entry, const std::string& path) {
  if (entry.values.size() != 1) return entry;
  const std::string place = fmt::format("file {}, {}", path, entry.key);
  const std::string value = entry.values.front();
  const auto opposite = [&] { return std::vector<std::string>{parse_bool(value, place) ? "false" : "true"}; };
  if (entry.key == "stall_check.enabled") return {"no-stall-check", opposite(), entry.line};
  if (entry.key == "logging.with_timestamp") return {"log-hide-timestamp", opposite(), entry.line};
  if (entry.key != "controller") return entry;
  if (value != "gloo" && value != "mpi")
    throw Error(Errc::kUsage, fmt::format("{}: '{}' is not gloo or mpi", place, value));
  return {value, {"true"}, entry.line};
}

/// Reports an entry that stands for no option. horovodrun ignores such keys of its YAML files, so that a warning has to
/// do there.
void refuse_or_warn(const ConfigEntry& entry, const std::string& path, Warnings& warnings) {
  if (!is_yaml(path))
    throw Error(Errc::kUsage, fmt::format("file {}: unknown key '{}'; {}", path, entry.key, hint_for(entry.key)));
  warnings.push_back(fmt::format("file {}: line {}: unknown key '{}' is ignored; {}", path, entry.line, entry.key,
                                 hint_for(entry.key)));
}

}  // namespace

Settings config_file_settings(const std::string& text, const std::string& path, Warnings& warnings) {
  Settings settings;
  for (ConfigEntry& given : read_entries(text, path)) {
    const ConfigEntry entry = as_option(std::move(given), path);
    const Option* option = option_of_key(entry.key);
    if (option == nullptr) {
      refuse_or_warn(entry, path, warnings);
      continue;
    }
    if (entry.values.empty() && is_yaml(path)) {
      warnings.push_back(fmt::format("file {}: line {}: {} has no value and is ignored", path, entry.line, entry.key));
      continue;
    }
    const Setting setting{values_for(*option, entry, path), "file " + path};
    if (!settings.emplace(option->name, setting).second)
      throw Error(Errc::kUsage, fmt::format("file {}: {} is given twice; keep one", path, option->name));
  }
  return settings;
}

}  // namespace runjob
