#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/environment.hpp"

namespace runjob {

/// A GPU of this host, or an instance of one that MIG has divided.
struct GpuDevice {
  int index = 0;          ///< of the GPU in the order of bus ids, which is nvidia-smi's; instances of one share it
  std::string uuid;       ///< "GPU-5d5b...", "MIG-c6d4..."; "" if the driver does not give it
  std::string bus_id;     ///< "0000:17:00.0"
  int numa = -1;          ///< NUMA node; -1 if the firmware does not give it
  std::string near_cpus;  ///< "0-15,32-47"; "" if /sys does not give it

  bool operator==(const GpuDevice&) const = default;
};

/// The GPUs of NVIDIA's driver on this host; none without the driver. A GPU with MIG instances is listed as these.
/// `root`: a folder that has `proc` and `sys`, for tests. Where there are instances it blocks for 20 s at most.
/// Source  NVIDIA's driver, README chapter "The /proc interface": /proc/driver/nvidia/gpus/BUS/information; its MIG
///         guide: /proc/driver/nvidia/capabilities and `nvidia-smi -L`, which is run only where there are instances;
///         sysfs-bus-pci of Linux's Documentation/ABI: numa_node, local_cpulist.
std::vector<GpuDevice> list_gpu_devices(const std::string& root = "");

/// The device that `name`, a word of a choice, means: an index, or a UUID, which may be shortened. Null for none.
const GpuDevice* find_gpu(const std::vector<GpuDevice>& devices, std::string_view name);

/// "GPU 1 (GPU-5d5b..., NUMA node 0)"
std::string gpu_text(const GpuDevice& device);

/// The GPUs that the ranks may use on this host, by the names of gpu_choice.hpp. The choice in the agent's own
/// environment comes first, where a batch system may have made it; otherwise it is all GPUs of the driver, numbered
/// from 0, or their UUIDs where MIG has divided one.
/// Source  CUDA's programming guide for the end of a list. `root`: as list_gpu_devices().
std::vector<std::string> usable_gpus(const Environment& agent, const std::string& root = "");

}  // namespace runjob
