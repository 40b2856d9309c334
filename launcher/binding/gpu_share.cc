#include "launcher/binding/gpu_share.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "launcher/binding/gpu_choice.hpp"

namespace runjob {

std::vector<std::string> gpu_share(const std::vector<std::string>& gpus, int local_rank, int per_rank) {
  const auto count = static_cast<std::size_t>(per_rank);
  const std::size_t begin = static_cast<std::size_t>(local_rank) * count;
  if (gpus.empty()) throw Error(Errc::kUnavailable, kNoGpu);
  if (begin + count > gpus.size())
    throw Error(Errc::kUnavailable,
                fmt::format("{} GPU{} too few for {} rank{} with {} each", gpus.size(),
                            gpus.size() == 1 ? " is" : "s are", local_rank + 1, local_rank == 0 ? "" : "s", per_rank));
  const auto first = gpus.begin() + static_cast<std::ptrdiff_t>(begin);
  return {first, first + static_cast<std::ptrdiff_t>(count)};
}

std::string gpu_list(const std::vector<std::string>& gpus) {
  return fmt::format("{}", fmt::join(gpus, ","));
}

std::string visible_gpus(const Host& host, const Placement& placement, int per_rank) {
  if (!host.gpus) return "";
  std::vector<std::string> all;
  for (const int gpu : *host.gpus) all.push_back(std::to_string(gpu));
  return gpu_list(per_rank == 0 ? all : gpu_share(all, placement.local_rank, per_rank));
}

}  // namespace runjob
