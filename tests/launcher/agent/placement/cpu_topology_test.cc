#include "launcher/agent/placement/cpu_topology.hpp"

#include <filesystem>
#include <fstream>
#include <sched.h>
#include <set>

#include "tests/catch.hpp"
#include "tests/temporary_directory.hpp"

using namespace runjob;
namespace fs = std::filesystem;

namespace {

/// A /sys of our own, in which each of this process's CPUs is described as the test likes.
class FakeSys {
 public:
  const std::string& path() const { return folder_.path(); }

  void write(const std::string& name, const std::string& text) const {
    const fs::path path = folder_.path() + "/devices/system/" + name;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text << "\n";
  }

 private:
  TemporaryDirectory folder_;
};

}  // namespace

TEST_CASE("a list of CPUs is read in the kernel's form", "[unit]") {
  CHECK(parse_cpu_list("0-3,8,10-11") == std::vector<int>{0, 1, 2, 3, 8, 10, 11});
  CHECK(parse_cpu_list("5") == std::vector<int>{5});
  for (const char* bad : {"", "x", "1-", "3-1", "1;2", "-1", "0-99999999"}) {
    INFO(bad);
    CHECK(parse_cpu_list(bad).empty());
  }
}

TEST_CASE("the affinity is what the kernel says", "[unit]") {
  cpu_set_t set;
  REQUIRE(::sched_getaffinity(0, sizeof set, &set) == 0);
  const std::vector<int> cpus = affinity();
  CHECK(cpus.size() == static_cast<std::size_t>(CPU_COUNT(&set)));
  for (const int cpu : cpus) CHECK(CPU_ISSET(static_cast<std::size_t>(cpu), &set));
}

TEST_CASE("cores, NUMA nodes and sockets come from /sys", "[unit]") {
  const FakeSys sys;
  const std::vector<int> cpus = affinity();
  const std::string first = std::to_string(cpus.front());
  sys.write("cpu/cpu" + first + "/topology/thread_siblings_list", first + "-" + std::to_string(cpus.front() + 1));
  sys.write("cpu/cpu" + first + "/topology/physical_package_id", "3");
  sys.write("node/node7/cpulist", first);
  sys.write("node/has_cpu", "7");
  const std::vector<Cpu> found = usable_cpus(sys.path());
  CHECK(found.size() == cpus.size());
  CHECK(found.back() == Cpu{cpus.front(), cpus.front(), 7, 3});  // sorted by socket
}

TEST_CASE("what /sys does not say is one core for each CPU, one node and one socket", "[unit]") {
  std::vector<Cpu> expected;
  for (const int cpu : affinity()) expected.push_back({cpu, cpu, 0, 0});
  CHECK(usable_cpus("/nonexistent") == expected);
}

TEST_CASE("this host's own /sys makes sense", "[unit]") {
  const std::vector<Cpu> cpus = usable_cpus();
  std::set<int> numbers;
  for (const Cpu& cpu : cpus) {
    numbers.insert(cpu.number);
    CHECK(cpu.core <= cpu.number);
  }
  const std::vector<int> allowed = affinity();
  CHECK(numbers == std::set<int>(allowed.begin(), allowed.end()));
}
