#include "launcher/binding/gpu_devices.hpp"

#include <algorithm>
#include <dirent.h>
#include <string_view>

#include "base/unique_handle.hpp"

namespace runjob {
namespace {

using UniqueDirectory = UniqueHandle<DIR*, ::closedir, nullptr>;

/// Up to the first entry that is no device: CUDA sees none from there on.
std::vector<std::string> split(std::string_view list) {
  std::vector<std::string> result;
  while (!list.empty()) {
    const std::string_view entry = list.substr(0, list.find(','));
    if (entry.empty() || entry.front() == '-') break;
    result.emplace_back(entry);
    list.remove_prefix(std::min(entry.size() + 1, list.size()));
  }
  return result;
}

}  // namespace

std::vector<std::string> usable_gpus(const Environment& agent, const std::string& driver) {
  const auto chosen = agent.find("CUDA_VISIBLE_DEVICES");
  if (chosen != agent.end()) return split(chosen->second);
  std::vector<std::string> result;
  const UniqueDirectory directory(::opendir(driver.c_str()));
  if (!directory) return result;
  while (const dirent* entry = ::readdir(directory.get())) {
    if (entry->d_name[0] != '.') result.push_back(std::to_string(result.size()));
  }
  return result;
}

}  // namespace runjob
