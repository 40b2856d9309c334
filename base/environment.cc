#include "base/environment.hpp"

#include <algorithm>
#include <array>
#include <sys/auxv.h>
#include <unistd.h>

namespace runjob {
namespace {

constexpr std::array<std::string_view, 5> kNamesOfLibraries{"RUNJOB_NCCL_LIBRARY", "PMIX_PREFIX", "OPAL_PREFIX",
                                                            "PRTE_PREFIX", "OMPI_LIBDIR_LOC"};

}  // namespace

std::string_view value_of(const Environment& environment, std::string_view name) {
  const auto found = environment.find(name);
  return found == environment.end() ? std::string_view() : std::string_view(found->second);
}

Environment current_environment() {
  Environment result;
  const bool has_more_rights = ::getauxval(AT_SECURE) != 0;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos || equals == 0) continue;
    const auto is_name = [name = text.substr(0, equals)](std::string_view each) { return each == name; };
    if (has_more_rights && std::any_of(kNamesOfLibraries.begin(), kNamesOfLibraries.end(), is_name)) continue;
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
