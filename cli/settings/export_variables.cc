#include "cli/settings/export_variables.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "cli/settings/variable_name.hpp"

namespace runjob {

Environment export_variables(const Setting& setting, const Environment& environment, Warnings& warnings) {
  const std::string place = place_of("export", setting);
  Environment result;
  for (const std::string& text : setting.values) {
    const std::size_t equals = text.find('=');
    const std::string name = text.substr(0, equals);
    if (!is_variable_name(name))
      throw Error(Errc::kUsage,
                  fmt::format("{}: '{}' is not the name of a variable; write NAME or NAME=VALUE", place, name));
    if (is_given_to_ranks(name))
      throw Error(Errc::kUsage, fmt::format("{}: {} is set by runjob for each rank; leave it out", place, name));
    if (equals != std::string::npos) {
      result[name] = text.substr(equals + 1);
      continue;
    }
    const auto found = environment.find(name);
    if (found != environment.end()) {
      result[name] = found->second;
    } else {
      warnings.push_back(fmt::format("{}: {} is not set here, so the ranks do not get it", place, name));
    }
  }
  return result;
}

}  // namespace runjob
