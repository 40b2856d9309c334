#include "base/ignored_variables.hpp"

#include <cstdlib>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace runjob {
namespace {

/// True if Horovod takes `value` for a switch that is on: a number above 0 at its beginning.
bool is_on(const std::string& value) {
  return std::strtol(value.c_str(), nullptr, 10) > 0;
}

bool is_several(const std::string& value) {
  return std::strtol(value.c_str(), nullptr, 10) > 1;
}

bool is_set(const std::string& value) {
  return !value.empty();
}

bool is_not_gloo(const std::string& value) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  std::string word;
  for (const char c : value) word += lower(c);
  return !word.empty() && word != "gloo";
}

/// A variable, and which of its values would change a job of Horovod's only.
struct Row {
  std::string_view name;
  bool (*is_ignored)(const std::string& value);
};

/// Some of Horovod's variables ask for what is so anyway, whatever their value: HOROVOD_MPI_THREADS_DISABLE,
/// HOROVOD_DISABLE_NVTX_RANGES, HOROVOD_BATCH_D2D_MEMCOPIES, HOROVOD_ENABLE_ASYNC_COMPLETION above 0. Others are read
/// when Horovod is built: HOROVOD_GPU_OPERATIONS.
constexpr Row kRows[] = {
    {"HOROVOD_CONTROLLER", is_not_gloo},
    {"HOROVOD_CPU_OPERATIONS", is_not_gloo},
    {"HOROVOD_AUTOTUNE_GAUSSIAN_PROCESS_NOISE", is_set},
    {"HOROVOD_TORUS_ALLREDUCE", is_on},
    {"HOROVOD_THREAD_AFFINITY", is_set},
    {"HOROVOD_ENABLE_XLA_OPS", is_on},
    {"HOROVOD_CCL_CACHE", is_on},
    {"HOROVOD_ADASUM_MPI_CHUNK_SIZE", is_set},
    {"RUNJOB_NUM_NCCL_STREAMS", is_several},
    {"HOROVOD_NUM_NCCL_STREAMS", is_several},
};

}  // namespace

std::string ignored_variables_warning(const Environment& environment) {
  std::vector<std::string_view> names;
  for (const Row& row : kRows) {
    const auto found = environment.find(row.name);
    if (found != environment.end() && row.is_ignored(found->second)) names.push_back(row.name);
  }
  if (names.empty()) return "";
  return fmt::format("{} {} no effect with runjob; docs/environment.md gives the reasons", fmt::join(names, ", "),
                     names.size() == 1 ? "has" : "have");
}

}  // namespace runjob
