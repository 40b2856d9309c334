#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace runjob {

/// The value of one option as text, and its source.
struct Setting {
  std::vector<std::string> values;  ///< one; several for a repeatable option
  std::string origin;               ///< "-np", "environment RUNJOB_NUM_PROC", "file job.toml"

  bool operator==(const Setting&) const = default;
};

/// Option name -> value. An option that no source gives is absent; defaults are not in it.
using Settings = std::map<std::string, Setting, std::less<>>;

/// Remarks on settings that work, but not as requested. main() prints them; tests assert on them.
using Warnings = std::vector<std::string>;

/// Merges two sources: an option of `strong` hides the same one of `weak`. An option that adds up keeps the values of
/// both, the weak ones first. hosts, hostfile and host-discovery-script answer one question, so any of them in `strong`
/// hides all of them in `weak`. Pure.
/// Errors  Error(kUsage) when one source gives two of these three.
Settings merge_settings(Settings strong, const Settings& weak);

/// How messages name an option's value: "-np", "environment RUNJOB_NUM_PROC", "file job.toml, num-proc".
std::string place_of(std::string_view option, const Setting& setting);

}  // namespace runjob
