#pragma once

#include <string>

namespace runjob {

/// What --version prints: "runjob 0.1.0".
std::string version_text();

}  // namespace runjob
