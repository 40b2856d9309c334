#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/environment.hpp"

/// The variables that leave a process some of its host's GPUs, by numbers or UUIDs. Only gpu_choice.cc knows their
/// names.
/// Source  CUDA's programming guide: CUDA_VISIBLE_DEVICES.
namespace runjob {

/// The reason why a rank gets no GPU, for people.
inline constexpr char kNoGpu[] = "there is no GPU: CUDA_VISIBLE_DEVICES names none, or the driver shows none";

/// The list of GPUs that `environment` chooses, as it stands there; empty for none of them. Nothing if it leaves all.
std::optional<std::string> chosen_gpus(const Environment& environment);

/// Makes `list` the only choice in `environment`.
void choose_gpus(Environment& environment, const std::string& list);

/// True if `variable` is one of them. It numbers one host's GPUs, so it stays on that host.
bool chooses_gpus(std::string_view variable);

}  // namespace runjob
