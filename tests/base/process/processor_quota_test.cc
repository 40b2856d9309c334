#include "base/process/processor_quota.hpp"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <unistd.h>

#include "tests/catch.hpp"

using namespace runjob;

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

}  // namespace

TEST_CASE("the smallest quota from a control group up to the root counts", "[unit]") {
  const Groups groups;
  groups.write("a/b/cpu.max", "max 100000\n");
  groups.write("a/cpu.max", "150000 100000\n");
  groups.write("a/b/c/cpu.max", "400000 100000\n");
  CHECK(control_group_quota("0::/a/b/c\n", groups.mount) == 1.5);
  CHECK(std::isinf(control_group_quota("0::/\n", groups.mount)));
  groups.write("cpu.max", "50000 100000\n");  // as a container sees its own group
  CHECK(control_group_quota("0::/\n", groups.mount) == 0.5);
}

TEST_CASE("version 1's quota of the cpu controller counts too", "[unit]") {
  const Groups groups;
  groups.write("cpu/x/cpu.cfs_quota_us", "-1\n");
  groups.write("cpu/x/cpu.cfs_period_us", "100000\n");
  const std::string self = "12:memory:/y\n4:cpu,cpuacct:/x\n";
  CHECK(std::isinf(control_group_quota(self, groups.mount)));
  groups.write("cpu/x/cpu.cfs_quota_us", "200000\n");
  CHECK(control_group_quota(self, groups.mount) == 2);
}

TEST_CASE("what cannot be read is no quota", "[unit]") {
  CHECK(std::isinf(control_group_quota("", "/nonexistent")));
  CHECK(std::isinf(control_group_quota("nonsense\n0::/a\n", "/nonexistent")));
}
