#include "launcher/binding/gpu_devices.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <dirent.h>
#include <fstream>

#include <fmt/format.h>

#include "base/unique_handle.hpp"
#include "launcher/binding/gpu_choice.hpp"

namespace runjob {
namespace {

using UniqueDirectory = UniqueHandle<DIR*, ::closedir, nullptr>;
using UniquePipe = UniqueHandle<std::FILE*, ::pclose, nullptr>;

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

/// Sorted; none if there is no such folder.
std::vector<std::string> entries_of(const std::string& folder) {
  std::vector<std::string> result;
  const UniqueDirectory directory(::opendir(folder.c_str()));
  if (!directory) return result;
  while (const dirent* entry = ::readdir(directory.get())) {
    if (entry->d_name[0] != '.') result.emplace_back(entry->d_name);
  }
  std::sort(result.begin(), result.end());
  return result;
}

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

/// False unless `text` is a number as a whole.
bool read_number(std::string_view text, int& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

/// Of a line such as "GPU UUID: \t GPU-5d5b...".
std::string uuid_in(const std::string& information) {
  std::ifstream file(information);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("GPU UUID:")) continue;
    const auto begin = line.find("GPU-");
    return begin == line.npos ? "" : line.substr(begin, line.find_first_of(" \t", begin) - begin);
  }
  return "";
}

bool has_instances(const std::string& root) {
  const std::string folder = root + "/proc/driver/nvidia/capabilities";
  for (const std::string& gpu : entries_of(folder)) {
    for (const std::string& entry : entries_of(folder + "/" + gpu + "/mig")) {
      if (entry.starts_with("gi")) return true;
    }
  }
  return false;
}

/// What stands between "(UUID: " and ")".
std::string uuid_of_line(const std::string& line) {
  constexpr std::string_view kLead = "(UUID: ";
  const auto lead = line.find(kLead);
  if (lead == line.npos) return "";
  const auto begin = lead + kLead.size();
  return line.substr(begin, line.find(')', begin) - begin);
}

/// Replaces the GPUs of `devices` that are divided by their instances. A driver whose program hangs is given up.
std::vector<GpuDevice> with_instances(const std::vector<GpuDevice>& devices) {
  const UniquePipe list(::popen("timeout 20 nvidia-smi -L 2>/dev/null", "re"));  // NOLINT(cert-env33-c): constant
  if (!list) return devices;
  std::vector<GpuDevice> result;
  GpuDevice gpu;
  bool is_pending = false;  // the GPU is in the list, if it has no instances
  for (char line[512]; std::fgets(line, sizeof line, list.get()) != nullptr;) {
    const std::string text = line, uuid = uuid_of_line(text);
    if (text.starts_with("GPU ")) {
      if (is_pending) result.push_back(gpu);
      const GpuDevice* const found = find_gpu(devices, uuid);
      is_pending = found != nullptr;
      if (found != nullptr) gpu = *found;
    } else if (uuid.starts_with("MIG-") && !gpu.uuid.empty()) {
      is_pending = false;
      result.push_back(gpu);
      result.back().uuid = uuid;
    }
  }
  if (is_pending) result.push_back(gpu);
  return result.empty() ? devices : result;
}

}  // namespace

std::vector<GpuDevice> list_gpu_devices(const std::string& root) {
  const std::string driver = root + "/proc/driver/nvidia/gpus";
  std::vector<GpuDevice> result;
  for (const std::string& bus_id : entries_of(driver)) {
    const std::string device = root + "/sys/bus/pci/devices/" + bus_id;
    GpuDevice gpu{static_cast<int>(result.size()), uuid_in(driver + "/" + bus_id + "/information"), bus_id, -1,
                  first_line(device + "/local_cpulist")};
    if (!read_number(first_line(device + "/numa_node"), gpu.numa)) gpu.numa = -1;
    result.push_back(std::move(gpu));
  }
  return has_instances(root) ? with_instances(result) : result;
}

const GpuDevice* find_gpu(const std::vector<GpuDevice>& devices, std::string_view name) {
  int index = 0;
  const bool is_index = read_number(name, index);
  const auto means = [&](const GpuDevice& device) {
    return is_index ? device.index == index : !name.empty() && device.uuid.starts_with(name);
  };
  const auto found = std::find_if(devices.begin(), devices.end(), means);
  return found == devices.end() ? nullptr : &*found;
}

std::string gpu_text(const GpuDevice& device) {
  const std::string uuid = device.uuid.empty() ? device.bus_id : device.uuid;
  return device.numa < 0 ? fmt::format("GPU {} ({})", device.index, uuid)
                         : fmt::format("GPU {} ({}, NUMA node {})", device.index, uuid, device.numa);
}

std::vector<std::string> usable_gpus(const Environment& agent, const std::string& root) {
  if (const auto chosen = chosen_gpus(agent)) return split(*chosen);
  const std::vector<GpuDevice> devices = list_gpu_devices(root);
  const bool is_divided =
      std::any_of(devices.begin(), devices.end(), [](const GpuDevice& each) { return each.uuid.starts_with("MIG-"); });
  std::vector<std::string> result;
  for (const GpuDevice& device : devices) result.push_back(is_divided ? device.uuid : std::to_string(device.index));
  return result;
}

}  // namespace runjob
