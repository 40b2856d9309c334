#include "launcher/binding/gpu_devices.hpp"

#include <cstdlib>
#include <filesystem>

#include "tests/catch.hpp"
#include "tests/launcher/binding/gpu_tree.hpp"

using namespace runjob;

using Gpus = std::vector<std::string>;

TEST_CASE("the GPUs are those that the environment names, else as many as the driver has", "[unit]") {
  const GpuTree host;
  host.add("0000:65:00.0", "GPU-6e", 1, "16-31");
  host.add("0000:17:00.0", "GPU-5d", 0, "0-15");
  CHECK(usable_gpus({}, host.root()) == Gpus{"0", "1"});
  CHECK(usable_gpus({}, "/nonexistent").empty());
  CHECK(usable_gpus({{"CUDA_VISIBLE_DEVICES", "3,1"}}, host.root()) == Gpus{"3", "1"});
  CHECK(usable_gpus({{"CUDA_VISIBLE_DEVICES", "GPU-8f,MIG-2"}}, host.root()) == Gpus{"GPU-8f", "MIG-2"});
  CHECK(usable_gpus({{"CUDA_VISIBLE_DEVICES", "2,-1,3"}}, host.root()) == Gpus{"2"});
  CHECK(usable_gpus({{"CUDA_VISIBLE_DEVICES", ""}}, host.root()).empty());
}

TEST_CASE("a GPU has a UUID, a NUMA node and near CPUs, over a tree of files that looks like a host's", "[unit]") {
  const GpuTree host;
  host.add("0000:65:00.0", "GPU-6e55", 1, "16-31,48-63");
  host.add("0000:17:00.0", "GPU-5d5b", -1, "0-15");
  const std::vector<GpuDevice> devices = list_gpu_devices(host.root());
  CHECK(devices == std::vector<GpuDevice>{{0, "GPU-5d5b", "0000:17:00.0", -1, "0-15"},
                                          {1, "GPU-6e55", "0000:65:00.0", 1, "16-31,48-63"}});
  CHECK(gpu_text(devices[0]) == "GPU 0 (GPU-5d5b)");
  CHECK(gpu_text(devices[1]) == "GPU 1 (GPU-6e55, NUMA node 1)");
  CHECK(find_gpu(devices, "1") == &devices[1]);
  CHECK(find_gpu(devices, "GPU-6e") == &devices[1]);
  CHECK(find_gpu(devices, "2") == nullptr);
  CHECK(find_gpu(devices, "GPU-7") == nullptr);
  CHECK(find_gpu(devices, "") == nullptr);
}

TEST_CASE("a driver that shows no more than a GPU's bus id is taken as it is", "[unit]") {
  const GpuTree host;
  std::filesystem::create_directories(host.root() + "/proc/driver/nvidia/gpus/0000:17:00.0");
  const std::vector<GpuDevice> devices = list_gpu_devices(host.root());
  REQUIRE(devices == std::vector<GpuDevice>{{0, "", "0000:17:00.0", -1, ""}});
  CHECK(gpu_text(devices[0]) == "GPU 0 (0000:17:00.0)");
}

TEST_CASE("instances that MIG has made are GPUs of their own, named by UUID, over a stand-in of nvidia-smi", "[unit]") {
  const GpuTree host;
  host.add("0000:17:00.0", "GPU-5d5b", 0, "0-15");
  host.add("0000:65:00.0", "GPU-6e55", 1, "16-31");
  const std::string path = std::getenv("PATH");
  host.write("/bin/nvidia-smi",
             "#!/bin/sh\n[ \"$1\" = -L ] || exit 1\n"
             "echo 'GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-5d5b)'\n"
             "echo '  MIG 1g.5gb      Device  0: (UUID: MIG-c6d4)'\n"
             "echo '  MIG 1g.5gb      Device  1: (UUID: MIG-cba6)'\n"
             "echo 'GPU 1: NVIDIA A100-SXM4-40GB (UUID: GPU-6e55)'\n");
  std::filesystem::permissions(host.root() + "/bin/nvidia-smi", std::filesystem::perms::owner_all);
  ::setenv("PATH", (host.root() + "/bin:" + path).c_str(), 1);
  CHECK(usable_gpus({}, host.root()) == Gpus{"0", "1"});  // nothing is divided, and nvidia-smi is not asked
  host.write("/proc/driver/nvidia/capabilities/gpu0/mig/gi7/access", "");
  CHECK(usable_gpus({}, host.root()) == Gpus{"MIG-c6d4", "MIG-cba6", "GPU-6e55"});
  const std::vector<GpuDevice> devices = list_gpu_devices(host.root());
  REQUIRE(devices.size() == 3);
  CHECK(devices[1] == GpuDevice{0, "MIG-cba6", "0000:17:00.0", 0, "0-15"});
  host.write("/bin/nvidia-smi", "#!/bin/sh\nexit 9\n");  // without its answer the GPUs are those of the driver
  CHECK(usable_gpus({}, host.root()) == Gpus{"0", "1"});
  ::setenv("PATH", path.c_str(), 1);
}
