#include "launcher/job_spec/job_map.hpp"

#include "hostfile/parse_hosts.hpp"
#include "tests/catch.hpp"

using namespace runjob;

namespace {

JobSpec spec_of(const std::string& hostfile, MapBy map_by = {}) {
  JobSpec spec;
  spec.map_by = map_by;
  spec.allocation = allocate(parse_hostfile(hostfile, "f"), std::nullopt, map_by);
  spec.command = {"python", "train.py", "--name", "a b"};
  spec.working_directory = "/home/me";
  return spec;
}

}  // namespace

TEST_CASE("the map has a line for each host: its ranks, slots, and the way there", "[unit]") {
  JobSpec spec = spec_of("localhost slots=2\nme@s1 slots=1 port=2222\n", {MapBy::Policy::kNode, 0});
  spec.local_hosts = {0};
  spec.bind_to = BindTo::kCore;
  CHECK(job_map(spec) ==
        "3 ranks on 2 hosts, mapped by node, bound to core:\n"
        "  localhost: ranks 0, 2 in 2 slots (this host)\n"
        "  s1: rank 1 in 1 slot (by SSH, port 2222, as me)\n");
  spec.map_by.cores_per_rank = 2;
  CHECK_THAT(job_map(spec), ContainsSubstring("mapped by node, bound to core (2 each):\n"));
}

TEST_CASE("the nodes of a SLURM allocation are reached by srun", "[unit]") {
  JobSpec spec = spec_of("s1 slots=1\n");
  spec.slurm = SlurmJob{"7", 1};
  CHECK_THAT(job_map(spec), ContainsSubstring("  s1: rank 0 in 1 slot (by srun)\n"));
}

TEST_CASE("each rank's GPUs have a line", "[unit]") {
  JobSpec spec = spec_of("a slots=2 gpus=0,2,4,6\nb slots=1\n", {MapBy::Policy::kSlot, 0});
  spec.gpus_per_rank = 2;
  CHECK(job_map(spec) ==
        "3 ranks on 2 hosts, mapped by slot, bound to none:\n"
        "  a: ranks 0, 1 in 2 slots (by SSH)\n"
        "    rank 0: GPUs 0,2\n"
        "    rank 1: GPUs 4,6\n"
        "  b: rank 2 in 1 slot (by SSH)\n"
        "    rank 2: GPUs 0-1 of those it finds\n");
  spec.gpus_per_rank = 1;
  CHECK_THAT(job_map(spec), ContainsSubstring("    rank 2: GPU 0 of those it finds\n"));
}

TEST_CASE("the plan says what would be run, as a shell would take it", "[unit]") {
  JobSpec spec = spec_of("a slots=1\n", {MapBy::Policy::kPerNode, 1});
  spec.environment_overrides = {{"A", ""}};
  CHECK(job_plan(spec) ==
        "1 rank on 1 host, mapped by ppr:1:node, bound to none:\n"
        "  a: rank 0 in 1 slot (by SSH)\n"
        "each runs: python train.py --name 'a b'\n"
        "in: /home/me\n"
        "with: A=''\n");
}
