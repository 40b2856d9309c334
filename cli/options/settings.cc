#include "cli/options/settings.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "cli/options/option_table.hpp"

namespace runjob {
namespace {

void check_one_host_list(const Settings& settings) {
  const auto hosts = settings.find("hosts");
  const auto hostfile = settings.find("hostfile");
  if (hosts == settings.end() || hostfile == settings.end()) return;
  throw Error(Errc::kUsage, fmt::format("{} and {} both name hosts; give one of them", place_of("hosts", hosts->second),
                                        place_of("hostfile", hostfile->second)));
}

bool adds_up(std::string_view name) {
  const Option* option = find_option(name);
  return option != nullptr && option->adds_up;
}

}  // namespace

Settings merge_settings(Settings strong, const Settings& weak) {
  check_one_host_list(strong);
  check_one_host_list(weak);
  const bool has_hosts = strong.count("hosts") + strong.count("hostfile") > 0;
  for (const auto& [name, setting] : weak) {
    if (has_hosts && (name == "hosts" || name == "hostfile")) continue;
    const auto [entry, is_new] = strong.emplace(name, setting);
    if (is_new || !adds_up(name)) continue;
    Setting& both = entry->second;
    both.values.insert(both.values.begin(), setting.values.begin(), setting.values.end());
    both.origin = setting.origin + ", " + both.origin;
  }
  return strong;
}

std::string place_of(std::string_view option, const Setting& setting) {
  const bool is_file = setting.origin.substr(0, 5) == "file ";
  return is_file ? fmt::format("{}, {}", setting.origin, option) : setting.origin;
}

}  // namespace runjob
