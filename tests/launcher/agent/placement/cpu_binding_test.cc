#include "launcher/agent/placement/cpu_binding.hpp"

#include "base/error.hpp"
#include "tests/catch.hpp"

using namespace runjob;

namespace {

using Lists = std::vector<std::vector<int>>;

/// Two sockets of two NUMA nodes of two cores of two CPUs; the second CPUs are numbered after all first ones.
std::vector<Cpu> sixteen() {
  std::vector<Cpu> cpus;
  for (int core = 0; core < 8; ++core) {
    for (const int number : {core, core + 8}) cpus.push_back({number, core, core / 2, core / 4});
  }
  return cpus;
}

}  // namespace

TEST_CASE("ranks share the cores evenly, whole ones", "[unit]") {
  CHECK(bind_ranks(sixteen(), BindTo::kNone, 2) == Lists{{}, {}});
  CHECK(bind_ranks(sixteen(), BindTo::kCore, 2) == Lists{{0, 1, 2, 3, 8, 9, 10, 11}, {4, 5, 6, 7, 12, 13, 14, 15}});
  CHECK(bind_ranks(sixteen(), BindTo::kCore, 3) == Lists{{0, 1, 8, 9}, {2, 3, 4, 10, 11, 12}, {5, 6, 7, 13, 14, 15}});
  CHECK(bind_ranks(sixteen(), BindTo::kCore, 8)[7] == std::vector<int>{7, 15});
  CHECK_THROWS_WITH(bind_ranks(sixteen(), BindTo::kCore, 9),
                    "9 ranks cannot have a core each: 8 may be used; start fewer, or bind to none or to "
                    "core:overload-allowed");
  CHECK_THROWS_WITH(bind_ranks({{4, 4, 0, 0}}, BindTo::kCore, 2),
                    "2 ranks cannot have a core each: one may be used; start fewer, or bind to none or to "
                    "core:overload-allowed");
}

TEST_CASE("NUMA nodes and sockets are shared out, and by neighbours where ranks are more", "[unit]") {
  CHECK(bind_ranks(sixteen(), BindTo::kSocket, 2) == Lists{{0, 1, 2, 3, 8, 9, 10, 11}, {4, 5, 6, 7, 12, 13, 14, 15}});
  CHECK(bind_ranks(sixteen(), BindTo::kNuma, 4) == Lists{{0, 1, 8, 9}, {2, 3, 10, 11}, {4, 5, 12, 13}, {6, 7, 14, 15}});
  CHECK(bind_ranks(sixteen(), BindTo::kNuma, 1)[0].size() == 16);
  const Lists six = bind_ranks(sixteen(), BindTo::kNuma, 6);
  CHECK(six[0] == six[1]);
  CHECK(six[5] == std::vector<int>{6, 7, 14, 15});
  const Lists four = bind_ranks(sixteen(), BindTo::kSocket, 4);
  CHECK((four[0] == four[1] && four[2] == four[3] && four[0] != four[2]));
}

TEST_CASE("cores are shared by neighbours where ranks are more and that is allowed", "[unit]") {
  CHECK(bind_ranks(sixteen(), BindTo::kSharedCore, 2) == bind_ranks(sixteen(), BindTo::kCore, 2));
  const Lists ranks = bind_ranks(sixteen(), BindTo::kSharedCore, 16);
  CHECK(ranks[0] == std::vector<int>{0, 8});
  CHECK(ranks[1] == ranks[0]);
  CHECK(ranks[15] == std::vector<int>{7, 15});
}

TEST_CASE("a number of cores for each rank is the next cores after those of the rank before it", "[unit]") {
  CHECK(bind_ranks(sixteen(), BindTo::kCore, 2, 3) == Lists{{0, 1, 2, 8, 9, 10}, {3, 4, 5, 11, 12, 13}});
  CHECK(bind_ranks(sixteen(), BindTo::kSharedCore, 2, 3) == bind_ranks(sixteen(), BindTo::kCore, 2, 3));
  CHECK(bind_ranks(sixteen(), BindTo::kSharedCore, 3, 4)[2] == std::vector<int>{0, 1, 2, 3, 8, 9, 10, 11});
  CHECK(bind_ranks(sixteen(), BindTo::kNuma, 2, 3) == bind_ranks(sixteen(), BindTo::kNuma, 2));
  CHECK_THROWS_WITH(bind_ranks(sixteen(), BindTo::kCore, 3, 3),
                    "3 ranks cannot have 3 cores each (PE=3): 8 may be used; start fewer, or ask for fewer cores");
  CHECK_THROWS_WITH(bind_ranks(sixteen(), BindTo::kSharedCore, 1, 9),
                    ContainsSubstring("1 rank cannot have 9 cores each (PE=9)"));
}

TEST_CASE("only what may be used is shared out", "[unit]") {
  CHECK(bind_ranks({{2, 2, 1, 0}, {10, 2, 1, 0}, {5, 5, 2, 1}}, BindTo::kCore, 2) == Lists{{2, 10}, {5}});
}
