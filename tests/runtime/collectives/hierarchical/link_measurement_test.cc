#include "runtime/collectives/hierarchical/link_measurement.hpp"

#include "tests/catch.hpp"
#include "tests/runtime/collectives/hierarchical/thread_hosts.hpp"

using namespace runjob::runtime;

TEST_CASE("all ranks get the same costs, and columns only when all hosts can have them", "[runtime][unit]") {
  const bool all_can = GENERATE(true, false);
  std::vector<LinkCosts> costs(6);
  std::vector<std::uint64_t> tags(6);
  const auto errors = run_hosts({{0, 0, 1, 1, 2, 2}, {}}, [&](HostChannels& channels) {
    const auto rank = static_cast<std::size_t>(channels.topology.rank());
    costs[rank] = measure_links(channels, all_can || rank < 2);
    tags[rank] = channels.next_tags();
  });
  CHECK(errors == no_errors(6));
  for (std::size_t rank = 0; rank < 6; ++rank) {
    CHECK(costs[rank] == costs[0]);
    CHECK(tags[rank] == tags[0]);
  }
  CHECK(costs[0].columns == (all_can ? 2 : 1));
  CHECK(costs[0].short_seconds > 0);
  CHECK(costs[0].long_seconds > 0);
  CHECK(costs[0].bytes_per_second > 0);
  CHECK(costs[0].copied_per_second > 0);
}
