#include "cli/settings/toml_config.hpp"

#include <sstream>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/error.hpp"

namespace runjob {
namespace {

/// The reason why CLI11 2.1 would give `line` another meaning; empty if it would not. CLI11 takes a '#' between quotes
/// for a comment, and leaves escapes as they are.
std::string_view misreading(std::string_view line, TomlDialect dialect) {
  char quote = '\0';
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == '#') return quote == '\0' ? "" : "a '#' inside quotes cannot be read here; use a YAML file";
    if (quote == '"' && c == '\\') {
      if (line.substr(i + 1).starts_with('"')) {
        ++i;
      } else if (dialect == TomlDialect::kToml) {
        return "only \\\" can be read here of the escapes; put the text between single quotes, or use a YAML file";
      }
    } else if (quote == c) {
      quote = '\0';
    } else if (quote == '\0' && (c == '"' || c == '\'')) {
      quote = c;
    }
  }
  return "";
}

void refuse_misreadings(const std::string& text, TomlDialect dialect, std::string_view path) {
  std::istringstream lines(text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    const std::string_view problem = misreading(line, dialect);
    if (!problem.empty()) throw Error(Errc::kUsage, fmt::format("file {}: line {}: {}", path, number, problem));
  }
}

}  // namespace

std::vector<ConfigEntry> toml_entries(const std::string& text, TomlDialect dialect, std::string_view path) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  refuse_misreadings(text, dialect, path);
  std::istringstream input(text.starts_with(kByteOrderMark) ? text.substr(kByteOrderMark.size()) : text);
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
