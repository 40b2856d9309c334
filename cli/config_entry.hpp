#pragma once

#include <string>
#include <vector>

namespace runjob {

/// One key of a config file with its values, as any format gives it: `timeline.filename`, sections and nested
/// maps joined by '.'. A list has several values.
struct ConfigEntry {
  std::string key;
  std::vector<std::string> values;

  bool operator==(const ConfigEntry&) const = default;
};

}  // namespace runjob
