#include "launcher/binding/gpu_devices.hpp"

#include <filesystem>

#include "tests/catch.hpp"
#include "tests/temporary_directory.hpp"

using namespace runjob;

TEST_CASE("the GPUs are those that the environment names, else as many as the driver has", "[unit]") {
  const TemporaryDirectory driver;
  for (const char* device : {"/0000:17:00.0", "/0000:65:00.0"})
    std::filesystem::create_directory(driver.path() + device);
  using Gpus = std::vector<std::string>;
  CHECK(usable_gpus({}, driver.path()) == Gpus{"0", "1"});
  CHECK(usable_gpus({}, "/nonexistent").empty());
  CHECK(usable_gpus({{"CUDA_VISIBLE_DEVICES", "3,1"}}, driver.path()) == Gpus{"3", "1"});
  CHECK(usable_gpus({{"CUDA_VISIBLE_DEVICES", "GPU-8f,MIG-2"}}, driver.path()) == Gpus{"GPU-8f", "MIG-2"});
  CHECK(usable_gpus({{"CUDA_VISIBLE_DEVICES", "2,-1,3"}}, driver.path()) == Gpus{"2"});
  CHECK(usable_gpus({{"CUDA_VISIBLE_DEVICES", ""}}, driver.path()).empty());
}
