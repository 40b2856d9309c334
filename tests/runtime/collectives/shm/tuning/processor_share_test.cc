#include "runtime/collectives/shm/tuning/processor_share.hpp"

#include <algorithm>
#include <sched.h>
#include <string>
#include <vector>

#include "tests/catch.hpp"

using namespace runjob::runtime;

namespace {

/// As own_processors().
std::string set_of(const std::vector<std::size_t>& processors) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const std::size_t processor : processors) CPU_SET(processor, &set);
  return {reinterpret_cast<const char*>(&set), sizeof set};
}

/// The processors that this process's control group allows, on a machine with all that there can be.
double share_of_all() {
  return processor_share({std::string(sizeof(cpu_set_t), '\xff')});
}

bool may_spin(const std::vector<std::string>& processors, std::size_t rank) {
  return has_processor_to_spin(processors, processor_share(processors), rank);
}

}  // namespace

TEST_CASE("ranks that are bound to different processors have all of those", "[runtime][unit]") {
  CHECK(processor_share({set_of({0}), set_of({0})}) == std::min(1.0, share_of_all()));
  CHECK(processor_share({set_of({0}), set_of({9})}) == std::min(2.0, share_of_all()));
  CHECK(processor_share({own_processors()}) > 0);
  CHECK(processor_share({""}) > 0);
}

TEST_CASE("a rank may spin on a processor of its own, and where there are more processors than ranks",
          "[runtime][unit]") {
  const std::string all = set_of({0, 1, 2});
  CHECK(may_spin({set_of({0})}, 0) == (share_of_all() >= 1));
  CHECK(may_spin({set_of({0}), set_of({9})}, 0) == (share_of_all() >= 2));  // each is bound to its own
  CHECK(may_spin({all, all}, 1) == (share_of_all() > 2));
  CHECK_FALSE(may_spin({all, all, all}, 1));                    // all are needed
  CHECK_FALSE(may_spin({set_of({0}), set_of({0})}, 0));         // both are bound to the same one
  CHECK_FALSE(may_spin({set_of({0}), all}, 0));                 // the other one may need it
  CHECK(may_spin({"", ""}, 0) == (processor_share({""}) > 2));  // bound to none that it knows
}
