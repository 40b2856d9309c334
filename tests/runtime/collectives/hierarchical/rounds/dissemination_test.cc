#include "runtime/collectives/hierarchical/rounds/dissemination.hpp"

#include <numeric>
#include <set>
#include <vector>

#include "tests/catch.hpp"

using runjob::runtime::Dissemination;

TEST_CASE("after all steps every host has the blocks of all, from its own on", "[runtime][unit]") {
  const int hosts = GENERATE(1, 2, 3, 4, 5, 7, 8, 13, 33);
  std::vector<std::vector<int>> known;
  for (int host = 0; host < hosts; ++host) known.push_back({host});
  for (int step = 0; step < Dissemination{0, hosts}.steps(); ++step) {
    const auto before = known;
    for (int host = 0; host < hosts; ++host) {
      const Dissemination way{host, hosts};
      const int source = way.source(step);
      REQUIRE(Dissemination{source, hosts}.target(step) == host);
      const auto& theirs = before[static_cast<std::size_t>(source)];
      const auto count = static_cast<std::size_t>(way.blocks(step));
      REQUIRE(count <= theirs.size());
      auto& own = known[static_cast<std::size_t>(host)];
      own.insert(own.end(), theirs.begin(), theirs.begin() + static_cast<std::ptrdiff_t>(count));
    }
  }
  for (int host = 0; host < hosts; ++host) {
    std::vector<int> expected;
    for (int i = 0; i < hosts; ++i) expected.push_back((host + i) % hosts);
    CHECK(known[static_cast<std::size_t>(host)] == expected);
  }
}

TEST_CASE("the steps of a host have different sources", "[runtime][unit]") {
  const int hosts = GENERATE(2, 3, 6, 32, 33);
  std::set<int> sources;
  const Dissemination way{1, hosts};
  for (int step = 0; step < way.steps(); ++step) sources.insert(way.source(step));
  CHECK(static_cast<int>(sources.size()) == way.steps());
}
