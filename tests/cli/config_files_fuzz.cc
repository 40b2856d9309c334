/// Feeds any bytes to the readers of configuration files and environment files. The first byte chooses: 't' TOML, 'i' INI,
/// 'y' YAML, 'e' an environment file; so that one corpus serves all.
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "cli/options/option_table.hpp"
#include "cli/settings/config_file.hpp"
#include "cli/settings/env_file.hpp"
#include "tests/fuzz.hpp"

using namespace runjob;

namespace {

void check_config(const std::string& text, const std::string& path) {
  Warnings warnings;
  for (const auto& [name, setting] : config_file_settings(text, path, warnings)) {
    require(find_option(name) != nullptr);
    require(!setting.values.empty());
    require(setting.origin == "file " + path);
  }
}

/// Each variable is one that a process can have.
void check_variables(std::string_view text) {
  Warnings warnings;
  for (const auto& [name, value] : parse_env_file(text, "f", {{"HERE", "x"}}, warnings)) {
    require(!name.empty() && name.find_first_of(std::string_view("=\0\n", 3)) == std::string::npos);
    require(value.find_first_of(std::string_view("\0\n", 2)) == std::string::npos);
  }
}

}  // namespace

void fuzz(std::string_view input) {
  if (input.empty()) return;
  const std::string text(input.substr(1));
  try {
    switch (input[0]) {
      case 't':
        check_config(text, "f.toml");
        break;
      case 'i':
        check_config(text, "f.ini");
        break;
      case 'y':
        check_config(text, "f.yaml");
        break;
      default:
        check_variables(text);
    }
  } catch (const Error& error) {
    require(error.code() == Errc::kUsage);
  }
}
