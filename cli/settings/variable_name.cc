#include "cli/settings/variable_name.hpp"

#include <algorithm>
#include <array>

namespace runjob {
namespace {

/// The names after RUNJOB_ and HOROVOD_.
constexpr std::array<std::string_view, 12> kGivenToRanks = {
    "RANK",       "SIZE",       "LOCAL_RANK", "LOCAL_SIZE", "CROSS_RANK",   "CROSS_SIZE",
    "RENDEZVOUS", "GENERATION", "JOB_ID",     "HOSTNAME",   "JOB_KEY_FILE", "ADDRESS",
};

}  // namespace

bool is_variable_name(std::string_view text) {
  return !text.empty() && text.find('=') == std::string_view::npos && text.find('\0') == std::string_view::npos;
}

bool is_given_to_ranks(std::string_view name) {
  for (const std::string_view prefix : {"RUNJOB_", "HOROVOD_"}) {
    if (name.substr(0, prefix.size()) != prefix) continue;
    const std::string_view rest = name.substr(prefix.size());
    return std::find(kGivenToRanks.begin(), kGivenToRanks.end(), rest) != kGivenToRanks.end();
  }
  return false;
}

}  // namespace runjob
