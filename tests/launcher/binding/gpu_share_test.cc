#include "launcher/binding/gpu_share.hpp"

#include "base/error.hpp"
#include "tests/catch.hpp"

using namespace runjob;

TEST_CASE("each rank has its share of the GPUs, in order", "[unit]") {
  const std::vector<std::string> gpus = {"3", "GPU-5f", "0", "7", "1"};
  CHECK(gpu_share(gpus, 0, 2) == std::vector<std::string>{"3", "GPU-5f"});
  CHECK(gpu_share(gpus, 1, 2) == std::vector<std::string>{"0", "7"});
  CHECK_THROWS_WITH(gpu_share(gpus, 2, 2), "5 GPUs are too few for 3 ranks with 2 each");
  CHECK_THROWS_WITH(gpu_share({"0"}, 1, 1), "1 GPU is too few for 2 ranks with 1 each");
  CHECK_THROWS_WITH(gpu_share({}, 0, 1), "there is no GPU: CUDA_VISIBLE_DEVICES names none, or the driver shows none");
  CHECK(gpu_list({"3", "GPU-5f"}) == "3,GPU-5f");
}

TEST_CASE("a host's list of GPUs is what its ranks see, or share", "[unit]") {
  Host host{"a", 2, "", {}, "", {}};
  Placement placement;
  placement.local_rank = 1;
  CHECK(visible_gpus(host, placement, 1).empty());
  host.gpus = {0, 2, 4, 6};
  CHECK(visible_gpus(host, placement, 0) == "0,2,4,6");
  CHECK(visible_gpus(host, placement, 1) == "2");
  CHECK(visible_gpus(host, placement, 2) == "4,6");
}
