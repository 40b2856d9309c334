#include "cli/settings/print_config.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/parse.hpp"
#include "cli/options/option_table.hpp"

namespace runjob {
namespace {

bool is_bare(const std::string& value) {
  const bool is_number =
      !value.empty() && value.size() < 19 && value.find_first_not_of("0123456789") == std::string::npos;
  return is_number || value == "true" || value == "false";
}

std::string toml_value(const std::string& value) {
  if (is_bare(value)) return value;
  const auto needs_escape = [](unsigned char c) { return c < 0x20 || c == 0x7f || c == '\''; };
  if (value.find('\\') != value.npos && std::none_of(value.begin(), value.end(), needs_escape))
    return "'" + value + "'";
  std::string quoted = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') quoted += '\\';
    const auto byte = static_cast<unsigned char>(c);
    quoted += byte < 0x20 || byte == 0x7f ? fmt::format("\\u{:04x}", byte) : std::string(1, c);
  }
  return quoted + "\"";
}

std::string toml_values(const Option& option, const Setting& setting) {
  if (!option.repeatable) return toml_value(setting.values.back());
  std::string list;
  for (const std::string& value : setting.values) list += (list.empty() ? "" : ", ") + toml_value(value);
  return "[" + list + "]";
}

/// The flag that is the opposite of `option`: hierarchical-allreduce has no-hierarchical-allreduce. Otherwise nullptr.
const Option* opposite_of(const Option& option) {
  const Option* opposite = find_option(fmt::format("no-{}", option.name));
  return opposite != nullptr && !opposite->is_foreign() ? opposite : nullptr;
}

bool is_opposite(const Option& option) {
  return option.name.starts_with("no-") && find_option(option.name.substr(3)) != nullptr &&
         !find_option(option.name.substr(3))->is_foreign();
}

/// The settings with one of the two flags of a pair, and each flag as true or false.
Settings without_opposites(Settings settings) {
  for (const Option& option : option_table()) {
    const auto found = settings.find(option.name);
    if (found == settings.end() || !option.value.empty()) continue;
    Setting& setting = found->second;
    setting.values = {parse_bool(setting.values.back(), place_of(option.name, setting)) ? "true" : "false"};
  }
  for (const Option& option : option_table()) {
    const Option* opposite = opposite_of(option);
    const auto found = opposite == nullptr ? settings.end() : settings.find(opposite->name);
    if (found == settings.end() || found->second.values.back() == "false") continue;
    settings[std::string(option.name)] = {{"false"}, found->second.origin};
  }
  return settings;
}

/// "key = value"; for an option without a value and without a plain default, a comment that describes the default.
std::string assignment(const Option& option, const Settings& settings) {
  const auto found = settings.find(option.name);
  if (found != settings.end()) return fmt::format("{} = {}", option.name, toml_values(option, found->second));
  const std::string plain(option.default_text);
  if (is_bare(plain)) return fmt::format("{} = {}", option.name, plain);
  return fmt::format("# {}: {}", option.name, plain.empty() ? "none" : plain);
}

}  // namespace

std::string config_text(const Settings& given) {
  const Settings settings = without_opposites(given);
  constexpr std::size_t kWidestColumn = 60;
  std::vector<std::pair<std::string, std::string>> rows;
  std::size_t width = 0;
  for (const Option& option : option_table()) {
    if (option.is_action || option.is_foreign() || is_opposite(option)) continue;
    const auto found = settings.find(option.name);
    const std::string origin = found == settings.end() ? "default" : found->second.origin;
    // A config file cannot name a config file, so that line is a comment too.
    const bool is_config_file = option.name == "config-file" && found != settings.end();
    rows.emplace_back((is_config_file ? "# " : "") + assignment(option, settings), origin);
    width = std::max(width, std::min(rows.back().first.size(), kWidestColumn));
  }
  std::string text;
  for (const auto& [left, origin] : rows) text += fmt::format("{:<{}}  # {}\n", left, width, origin);
  return text;
}

}  // namespace runjob
