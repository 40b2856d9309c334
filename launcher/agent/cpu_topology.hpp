#pragma once

#include <string>
#include <vector>

namespace runjob {

/// One logical CPU and what it is part of. The numbers only tell parts apart.
struct Cpu {
  int number = 0;
  int core = 0;
  int numa = 0;
  int socket = 0;

  bool operator==(const Cpu&) const = default;
};

/// The CPUs on which this process may run, sorted by socket, NUMA node and core. What /sys does not say is one core for
/// each CPU, one NUMA node and one socket. `root`: of /sys, for tests.
/// Source  sysfs-devices-system-cpu and sysfs-devices-node of Linux's Documentation/ABI. Not hwloc: its static library needs
/// libudev and dlopen, which a fully static agent cannot have.
std::vector<Cpu> usable_cpus(const std::string& root = "/sys");

/// The numbers on which the calling thread may run.
std::vector<int> affinity();

/// The kernel's form of a list: "0-3,8". Empty for what is none.
std::vector<int> parse_cpu_list(const std::string& text);

}  // namespace runjob
