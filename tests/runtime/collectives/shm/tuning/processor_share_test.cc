#include "runtime/collectives/shm/tuning/processor_share.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sched.h>
#include <unistd.h>

#include "tests/catch.hpp"

using namespace runjob::runtime;

namespace {

/// Control groups as files in a fresh folder.
struct Groups {
  std::filesystem::path mount =
      std::filesystem::temp_directory_path() / ("runjob-groups-" + std::to_string(::getpid()));
  Groups() { std::filesystem::create_directories(mount); }
  ~Groups() { std::filesystem::remove_all(mount); }

  void write(const std::string& file, const std::string& text) const {
    std::filesystem::create_directories((mount / file).parent_path());
    std::ofstream(mount / file) << text;
  }
};

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

TEST_CASE("the smallest quota from a control group up to the root counts", "[runtime][unit]") {
  const Groups groups;
  groups.write("a/b/cpu.max", "max 100000\n");
  groups.write("a/cpu.max", "150000 100000\n");
  groups.write("a/b/c/cpu.max", "400000 100000\n");
  CHECK(control_group_quota("0::/a/b/c\n", groups.mount) == 1.5);
  CHECK(std::isinf(control_group_quota("0::/\n", groups.mount)));
  groups.write("cpu.max", "50000 100000\n");  // as a container sees its own group
  CHECK(control_group_quota("0::/\n", groups.mount) == 0.5);
}

TEST_CASE("version 1's quota of the cpu controller counts too", "[runtime][unit]") {
  const Groups groups;
  groups.write("cpu/x/cpu.cfs_quota_us", "-1\n");
  groups.write("cpu/x/cpu.cfs_period_us", "100000\n");
  const std::string self = "12:memory:/y\n4:cpu,cpuacct:/x\n";
  CHECK(std::isinf(control_group_quota(self, groups.mount)));
  groups.write("cpu/x/cpu.cfs_quota_us", "200000\n");
  CHECK(control_group_quota(self, groups.mount) == 2);
}

TEST_CASE("what cannot be read is no quota", "[runtime][unit]") {
  CHECK(std::isinf(control_group_quota("", "/nonexistent")));
  CHECK(std::isinf(control_group_quota("nonsense\n0::/a\n", "/nonexistent")));
}

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
