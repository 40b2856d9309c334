#pragma once

#include <string>
#include <vector>

namespace runjob {

/// One logical CPU and the parts of the host that it belongs to. The numbers only distinguish the parts.
struct Cpu {
  int number = 0;
  int core = 0;
  int numa = 0;
  int socket = 0;

  bool operator==(const Cpu&) const = default;
};

/// The CPUs on which this process may run, sorted by socket, NUMA node and core. If /sys lacks the information, each
/// CPU is a core, and there is one NUMA node and one socket. `root` is the path of /sys, for tests.
/// Source  sysfs-devices-system-cpu and sysfs-devices-node of Linux's Documentation/ABI. Not hwloc: its static library
///         needs libudev and dlopen, which a fully static agent cannot have.
std::vector<Cpu> usable_cpus(const std::string& root = "/sys");

/// The numbers of the CPUs on which the calling thread may run.
std::vector<int> affinity();

/// How many processors this process may use, at least 1: as many as affinity() has, or the quota of its control group,
/// rounded up, if that is less. A quota limits the time of all threads together, and not where they run.
int usable_cores();

/// Parses the kernel's form of a list: "0-3,8". Returns an empty list for invalid text.
std::vector<int> parse_cpu_list(const std::string& text);

}  // namespace runjob
