#include "cli/settings/gather_settings.hpp"

#include "base/files/trusted_file.hpp"
#include "base/read_file.hpp"
#include "cli/options/option_table.hpp"
#include "cli/settings/config_file.hpp"
#include "cli/settings/environment_settings.hpp"

namespace runjob {

Settings gather_settings(const CommandLine& line, const Environment& environment, Warnings& warnings) {
  Settings given;
  for (const auto& [name, setting] : line.settings) {
    if (!find_option(name)->is_action) given.emplace(name, setting);
  }
  given = merge_settings(std::move(given), environment_settings(environment, warnings));
  const auto config = given.find("config-file");
  if (config == given.end()) return given;
  const std::string path = config->second.values.back(), place = place_of("config-file", config->second);
  const auto check_owner_and_mode = [&](int file, const struct ::stat& info) {
    require_trusted(file, info, path, place);
  };
  const std::string text = read_file(path, "config file", check_owner_and_mode);
  return merge_settings(std::move(given), config_file_settings(text, path, warnings));
}

}  // namespace runjob
