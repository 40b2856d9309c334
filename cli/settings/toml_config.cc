#include "cli/settings/toml_config.hpp"

#include <sstream>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/error.hpp"

namespace runjob {
namespace {

/// True when `line` has a '#' between quotes: CLI11 2.1 takes it for a comment and cuts the value there.
bool hides_hash_in_quotes(std::string_view line) {
  char quote = '\0';
  for (const char c : line) {
    if (quote == '\0' && c == '#') return false;
    if (quote != '\0' && c == '#') return true;
    if (quote == c) {
      quote = '\0';
    } else if (quote == '\0' && (c == '"' || c == '\'')) {
      quote = c;
    }
  }
  return false;
}

void refuse_hash_in_quotes(const std::string& text, std::string_view path) {
  std::istringstream lines(text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    if (hides_hash_in_quotes(line))
      throw Error(
          Errc::kUsage,
          fmt::format("file {}: line {}: a '#' inside quotes cannot be read here; use a YAML file", path, number));
  }
}

}  // namespace

std::vector<ConfigEntry> toml_entries(const std::string& text, TomlDialect dialect, std::string_view path) {
  refuse_hash_in_quotes(text, path);
  std::istringstream input(text);
  std::vector<CLI::ConfigItem> items;
  try {
    items = dialect == TomlDialect::kToml ? CLI::ConfigTOML().from_config(input) : CLI::ConfigINI().from_config(input);
  } catch (const std::exception& error) {
    throw Error(Errc::kUsage, fmt::format("file {}: {}", path, error.what()));
  }
  std::vector<ConfigEntry> entries;
  for (const CLI::ConfigItem& item : items) {
    if (item.name == "++" || item.name == "--") continue;  // CLI11's marks of where a section begins and ends
    entries.push_back({item.fullname(), item.inputs, 0});
  }
  return entries;
}

}  // namespace runjob
