#include "base/environment.hpp"

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

bool is_inside_a_job(const Environment& environment) {
  return environment.contains("RUNJOB_JOB_ID");
}

bool names_files_of_job(std::string_view variable) {
  return variable == "RUNJOB_TIMELINE" || variable == "HOROVOD_TIMELINE" || variable.starts_with("RUNJOB_COMMIT_") ||
         variable.starts_with("HOROVOD_COMMIT_");
}

}  // namespace runjob
