#include "launcher/agent/placement/rank_placement.hpp"

#include "base/error.hpp"
#include "launcher/agent/placement/cpu_topology.hpp"
#include "tests/catch.hpp"
#include "tests/launcher/binding/gpu_tree.hpp"

using namespace runjob;

namespace {

using Cpus = std::vector<int>;
using Texts = std::vector<std::string>;

Launch launch_of(int ranks) {
  Launch launch;
  launch.bind_to = BindTo::kGpu;
  for (int rank = 0; rank < ranks; ++rank) {
    LaunchProcess& added = launch.processes.emplace_back();
    added.number = rank;
    added.place.local_rank = rank;
  }
  return launch;
}

/// A stand-in of a host with two GPUs, each near one CPU of those that this process may use.
class TwoGpus : public GpuTree {
 public:
  const int first = affinity().front(), last = affinity().back();
  TwoGpus() {
    add("0000:17:00.0", "GPU-5d5b", 0, std::to_string(first));
    add("0000:65:00.0", "GPU-6e55", 1, std::to_string(last));
  }
};

}  // namespace

TEST_CASE("ranks are bound to the CPUs near their GPU, over a tree of files that looks like a host's", "[unit]") {
  const TwoGpus host;
  Launch launch = launch_of(3);
  std::vector<RankPlacement> placed = place_ranks(launch, {}, host.root());
  CHECK(placed[0].cpus == Cpus{host.first});
  CHECK(placed[1].cpus == Cpus{host.last});
  CHECK(placed[2].cpus == Cpus{host.first});  // more ranks than GPUs share them
  CHECK(placed[1].gpus == Texts{"GPU 1 (GPU-6e55, NUMA node 1)"});
  CHECK_FALSE(placed[1].visible_gpus);

  launch = launch_of(2);
  launch.gpus_per_rank = 1;
  placed = place_ranks(launch, {{"CUDA_VISIBLE_DEVICES", "1,0"}}, host.root());
  CHECK(placed[0].visible_gpus == "1");
  CHECK(placed[0].cpus == Cpus{host.last});
  CHECK(placed[1].gpus == Texts{"GPU 0 (GPU-5d5b, NUMA node 0)"});
}

TEST_CASE("a rank with several GPUs is near all of them, and the host list's GPUs count", "[unit]") {
  const TwoGpus host;
  Launch launch = launch_of(1);
  launch.gpus_per_rank = 2;
  launch.processes[0].environment["CUDA_VISIBLE_DEVICES"] = "GPU-6e,0";
  const std::vector<RankPlacement> placed = place_ranks(launch, {{"CUDA_VISIBLE_DEVICES", "7"}}, host.root());
  CHECK(placed[0].visible_gpus == "GPU-6e,0");  // the launcher's choice
  CHECK(placed[0].cpus == (host.first == host.last ? Cpus{host.first} : Cpus{host.first, host.last}));
  CHECK(placed[0].gpus == Texts{"GPU 1 (GPU-6e55, NUMA node 1)", "GPU 0 (GPU-5d5b, NUMA node 0)"});
  launch.bind_to = BindTo::kNone;
  launch.names_gpus = true;
  launch.processes[0].environment["CUDA_VISIBLE_DEVICES"] = "";  // a choice too: of none
  CHECK(place_ranks(launch, {{"CUDA_VISIBLE_DEVICES", "0"}}, host.root())[0].visible_gpus == "");
  CHECK(place_ranks(launch, {{"CUDA_VISIBLE_DEVICES", "0"}}, host.root())[0].gpus.empty());
}

TEST_CASE("the map names the GPUs without binding to them, and a host without GPUs has none", "[unit]") {
  const TwoGpus host;
  Launch launch = launch_of(2);
  launch.bind_to = BindTo::kNone;
  CHECK(place_ranks(launch, {}, host.root())[0].gpus.empty());
  launch.names_gpus = true;
  CHECK(place_ranks(launch, {}, host.root())[1].gpus == Texts{"GPU 1 (GPU-6e55, NUMA node 1)"});
  CHECK(place_ranks(launch, {}, host.root())[1].cpus.empty());
  CHECK(place_ranks(launch, {}, "/nonexistent")[1].gpus.empty());
}

TEST_CASE("a rank that cannot be near its GPU is an error that names it", "[unit]") {
  const TwoGpus host;
  Launch launch = launch_of(1);
  CHECK_THROWS_WITH(
      place_ranks(launch, {}, "/nonexistent"),
      "rank 0 cannot be bound to the cores near its GPU: there is no GPU: CUDA_VISIBLE_DEVICES names none, "
      "or the driver shows none");
  CHECK_THROWS_WITH(
      place_ranks(launch, {{"CUDA_VISIBLE_DEVICES", "5"}}, host.root()),
      "rank 0 cannot be bound to the cores near its GPU 5: the driver shows 2 GPUs here, and none is that "
      "one");
  const GpuTree far;
  far.add("0000:17:00.0", "GPU-5d5b", 3, "60000");
  CHECK_THROWS_WITH(place_ranks(launch, {}, far.root()),
                    "rank 0 cannot be bound to the cores near its GPU: GPU 0 (GPU-5d5b, NUMA node 3) is near CPUs "
                    "60000, of which none may be used here; bind to none");
  const GpuTree plain;
  plain.write("/proc/driver/nvidia/gpus/0000:17:00.0/information", "");
  CHECK(place_ranks(launch, {}, plain.root())[0].cpus == affinity());  // nothing is known, so all are near
}
