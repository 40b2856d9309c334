#pragma once

#include <map>
#include <string>

namespace runjob {

/// Environment variables as a value, so that code which depends on them can be tested with a map.
/// Names and values are bytes: neither needs to be UTF-8.
using Environment = std::map<std::string, std::string, std::less<>>;

/// The variables of this process. No other code reads them; each program calls this once, in main() or init().
Environment current_environment();

}  // namespace runjob
