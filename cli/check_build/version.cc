#include "cli/check_build/version.hpp"

#include <fmt/format.h>

#include "base/version.hpp"

namespace runjob {

std::string version_text(bool as_horovodrun) {
  if (as_horovodrun) return fmt::format("{}\n", kHorovodVersion);
  return fmt::format("runjob {}\n", kVersion);
}

}  // namespace runjob
