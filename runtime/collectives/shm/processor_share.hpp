#pragma once

#include <string>

/// How many processors this process may use: what its affinity and its control group leave it. nproc and
/// std::thread::hardware_concurrency() know nothing of a container's quota.
/// Source  sched_getaffinity(2); Linux, Documentation/admin-guide/cgroup-v2.rst (cpu.max) and scheduler/sched-bwc.rst
/// (cpu.cfs_quota_us).
namespace runjob::runtime {

/// At least a hundredth, at most the machine.
double processor_share();

/// The smallest quota of the control group of `self` (the text of /proc/self/cgroup) and those above it, in processors;
/// infinite when there is none. `mount`: where the hierarchies are mounted: "/sys/fs/cgroup".
double control_group_quota(const std::string& self, const std::string& mount);

}  // namespace runjob::runtime
