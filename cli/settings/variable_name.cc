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

}  // namespace runjob
