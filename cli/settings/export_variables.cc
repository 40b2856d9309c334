#include "cli/settings/export_variables.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

#include "base/error.hpp"

namespace runjob {
namespace {

/// After RUNJOB_ and HOROVOD_: given to each rank by runjob; any other value breaks the job.
constexpr std::array<std::string_view, 12> kGivenToRanks = {
    "RANK",       "SIZE",       "LOCAL_RANK", "LOCAL_SIZE", "CROSS_RANK",   "CROSS_SIZE",
    "RENDEZVOUS", "GENERATION", "JOB_ID",     "HOSTNAME",   "JOB_KEY_FILE", "ADDRESS",
};

bool is_name(std::string_view text) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  return !text.empty() && is_letter(text.front()) &&
         std::all_of(text.begin(), text.end(), [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); });
}

bool is_given_to_ranks(std::string_view name) {
  for (const std::string_view prefix : {"RUNJOB_", "HOROVOD_"}) {
    if (name.substr(0, prefix.size()) != prefix) continue;
    const std::string_view rest = name.substr(prefix.size());
    return std::find(kGivenToRanks.begin(), kGivenToRanks.end(), rest) != kGivenToRanks.end();
  }
  return false;
}

}  // namespace

Environment export_variables(const Setting& setting, const Environment& environment, Warnings& warnings) {
  const std::string place = place_of("export", setting);
  Environment result;
  for (const std::string& text : setting.values) {
    const std::size_t equals = text.find('=');
    const std::string name = text.substr(0, equals);
    if (!is_name(name))
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
