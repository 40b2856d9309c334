#include "cli/options/settings.hpp"

#include <algorithm>
#include <iterator>
#include <set>

#include <fmt/format.h>

#include "base/error.hpp"
#include "cli/options/option_table.hpp"

namespace runjob {
namespace {

/// The options that name hosts, of which a source gives one.
constexpr const char* kHostLists[] = {"hosts", "hostfile", "host-discovery-script"};

bool is_host_list(std::string_view name) {
  return std::find(std::begin(kHostLists), std::end(kHostLists), name) != std::end(kHostLists);
}

void check_one_host_list(const Settings& settings) {
  const Settings::value_type* first = nullptr;
  for (const char* name : kHostLists) {
    const auto found = settings.find(name);
    if (found == settings.end()) continue;
    if (first != nullptr)
      throw Error(Errc::kUsage, fmt::format("{} and {} both name hosts; give one of them",
                                            place_of(first->first, first->second), place_of(name, found->second)));
    first = &*found;
  }
}

/// The name of the flag that is the opposite of `name`, if there is one: "no-hierarchical-allreduce".
std::string opposite_of(const std::string& name) {
  return name.starts_with("no-") ? name.substr(3) : "no-" + name;
}

bool adds_up(std::string_view name) {
  const Option* option = find_option(name);
  return option != nullptr && option->adds_up;
}

}  // namespace

Settings merge_settings(Settings strong, const Settings& weak) {
  check_one_host_list(strong);
  check_one_host_list(weak);
  const bool has_hosts = std::any_of(std::begin(kHostLists), std::end(kHostLists),
                                     [&strong](const char* name) { return strong.count(name) > 0; });
  std::set<std::string> decided;  // flags whose opposite the stronger source has
  for (const auto& [name, setting] : strong) decided.insert(opposite_of(name));
  for (const auto& [name, setting] : weak) {
    if (decided.contains(name)) continue;
    if (has_hosts && is_host_list(name)) continue;
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
