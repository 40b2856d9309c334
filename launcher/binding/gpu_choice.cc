#include "launcher/binding/gpu_choice.hpp"

namespace runjob {
namespace {

constexpr char kCuda[] = "CUDA_VISIBLE_DEVICES";

}  // namespace

std::optional<std::string> chosen_gpus(const Environment& environment) {
  const auto found = environment.find(kCuda);
  return found == environment.end() ? std::nullopt : std::optional(found->second);
}

void choose_gpus(Environment& environment, const std::string& list) {
  environment[kCuda] = list;
}

bool chooses_gpus(std::string_view variable) {
  return variable == kCuda;
}

}  // namespace runjob
