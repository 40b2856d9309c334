#pragma once

#include <string>

/// How much processor time the control group of this process allows. nproc, std::thread::hardware_concurrency() and the
/// affinity of a process do not show the quota of a container.
/// Threads  any.
/// Source  Linux, Documentation/admin-guide/cgroup-v2.rst (cpu.max) and scheduler/sched-bwc.rst (cpu.cfs_quota_us).
namespace runjob {

/// The smallest quota of this process's control group and of those above it, in processors: 1.5 for three seconds of
/// processor time in two seconds. Infinite if there is none.
double processor_quota();

/// The same for the control group of `self` (the text of /proc/self/cgroup). `mount`: the folder of the hierarchies,
/// "/sys/fs/cgroup".
double control_group_quota(const std::string& self, const std::string& mount);

}  // namespace runjob
