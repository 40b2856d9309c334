#include "cli/version.hpp"

#include <fmt/format.h>

#include "base/version.hpp"

namespace runjob {

std::string version_text() {
  return fmt::format("runjob {}\n", kVersion);
}

}  // namespace runjob
