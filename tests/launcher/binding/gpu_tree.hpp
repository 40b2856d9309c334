#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/temporary_directory.hpp"

namespace runjob {

/// A stand-in for /proc and /sys of a host with GPUs: a folder with the files that runjob reads there. No GPU is asked.
class GpuTree {
 public:
  const std::string& root() const { return folder_.path(); }

  /// `near`: the text of local_cpulist.
  void add(const std::string& bus_id, const std::string& uuid, int numa, const std::string& near) const {
    write("/proc/driver/nvidia/gpus/" + bus_id + "/information",
          "Model: \t\t stand-in, not a GPU\nIRQ:   \t\t 30\nGPU UUID: \t " + uuid +
              "\nBus Type: \t PCIe\nBus Location: \t " + bus_id + "\nDevice Minor: \t 0\n");
    write("/sys/bus/pci/devices/" + bus_id + "/numa_node", std::to_string(numa) + "\n");
    write("/sys/bus/pci/devices/" + bus_id + "/local_cpulist", near + "\n");
  }
  void write(const std::string& path, const std::string& text) const {
    const std::filesystem::path file = root() + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }

 private:
  const TemporaryDirectory folder_;
};

}  // namespace runjob
