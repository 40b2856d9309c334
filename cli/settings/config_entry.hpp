#pragma once

#include <string>
#include <vector>

namespace runjob {

/// One key of a config file with its values, as any format gives it: `timeline.filename`, sections and nested
/// maps joined by '.'. A list has several values, and a key without a value has none.
struct ConfigEntry {
  std::string key;
  std::vector<std::string> values;
  int line = 0;  ///< of the key in the file, from 1; 0 if the format does not give it

  bool operator==(const ConfigEntry&) const = default;
};

}  // namespace runjob
