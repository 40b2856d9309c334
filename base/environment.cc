#include "base/environment.hpp"

#include <string_view>
#include <unistd.h>

namespace runjob {

Environment current_environment() {
  Environment result;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos || equals == 0) continue;
    result.emplace(text.substr(0, equals), text.substr(equals + 1));  // the first of two wins, as getenv does
  }
  return result;
}

}  // namespace runjob
