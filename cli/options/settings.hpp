#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace runjob {

/// The value of one option as text, and who gave it.
struct Setting {
  std::vector<std::string> values;  ///< one; several for a repeatable option
  std::string origin;               ///< "-np", "environment RUNJOB_NUM_PROC", "file job.toml"

  bool operator==(const Setting&) const = default;
};

/// Option name -> value. What nobody gave is absent.
using Settings = std::map<std::string, Setting, std::less<>>;

/// Remarks on settings that work, but not as requested. main() prints them; tests assert on them.
using Warnings = std::vector<std::string>;

/// `strong` over `weak`. hosts and hostfile answer one question, so either of `strong` hides both of `weak`;
/// an option that adds up keeps both, the weak ones first. Errors  kUsage when one source gives both hosts and
/// hostfile.
Settings merge_settings(Settings strong, const Settings& weak);

/// How messages name an option's value: "-np", "environment RUNJOB_NUM_PROC", "file job.toml, num-proc".
std::string place_of(std::string_view option, const Setting& setting);

}  // namespace runjob
