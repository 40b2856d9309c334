#include "launcher/srun_task/step_roll.hpp"

#include "base/error.hpp"
#include "tests/catch.hpp"

using namespace runjob;

namespace {

StepHello hello(int rank, int node, const std::string& name) {
  return {"17.2", "", rank, 4, node, name, 1000 + rank};
}

}  // namespace

TEST_CASE("tasks become ranks on the nodes where SLURM has put them", "[unit]") {
  StepRoll roll("17.2", 4);
  roll.add(hello(3, 1, "s8"), "10.0.0.8", "10.0.0.7");
  CHECK(roll.missing() == "0-2");
  roll.add(hello(0, 0, "s7"), "127.0.0.1", "127.0.0.1");
  roll.add(hello(1, 1, "s8"), "10.0.0.8", "10.0.0.7");
  CHECK_FALSE(roll.complete());
  roll.add(hello(2, 0, "s7"), "127.0.0.1", "127.0.0.1");
  REQUIRE(roll.complete());
  CHECK(roll.missing() == "");
  CHECK(roll.free_port() == 1000);

  const Allocation allocation = roll.allocation();  // srun -m cyclic
  REQUIRE(allocation.hosts.size() == 2);
  CHECK(allocation.hosts[0].name == "s7");
  CHECK(allocation.hosts[1].slots == 2);
  CHECK(allocation.placements[3] == Placement{3, 4, 1, 2, 1, 2, 1});
  CHECK(roll.address_of(0) == "10.0.0.7");
  CHECK(roll.address_of(2) == "10.0.0.7");
  CHECK(roll.address_of(3) == "10.0.0.8");
}

TEST_CASE("tasks of one node need no address", "[unit]") {
  StepRoll roll("17.2", 4);
  for (int rank = 0; rank < 4; ++rank) roll.add(hello(rank, 0, "s7"), "127.0.0.1", "127.0.0.1");
  CHECK(roll.allocation().hosts.size() == 1);
  CHECK(roll.address_of(3) == "");
}

TEST_CASE("whoever does not belong to the step is turned away, and the others do not suffer", "[unit]") {
  StepRoll roll("17.2", 4);
  roll.add(hello(1, 0, "s7"), "127.0.0.1", "127.0.0.1");
  const auto refused = [&](StepHello hello) {
    CHECK_THROWS_AS(roll.add(hello, "10.0.0.9", "10.0.0.7"), Error);
    CHECK(roll.missing() == "0, 2, 3");
  };
  refused(hello(1, 1, "s8"));  // twice
  refused(hello(4, 1, "s8"));
  refused(hello(-1, 1, "s8"));
  refused(hello(2, 4, "s8"));
  refused(hello(2, -1, "s8"));
  refused({"17.3", "", 2, 4, 1, "s8", 0});
  refused({"17.2", "", 2, 5, 1, "s8", 0});
}
