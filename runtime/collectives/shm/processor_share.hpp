#pragma once

#include <string>
#include <vector>

/// How many processors the ranks of a host may use: what their affinities and their control group leave them. nproc and
/// std::thread::hardware_concurrency() know nothing of a container's quota, and a rank that is bound to one processor
/// knows nothing of those of the others.
/// Source  sched_getaffinity(2); Linux, Documentation/admin-guide/cgroup-v2.rst (cpu.max) and scheduler/sched-bwc.rst
/// (cpu.cfs_quota_us).
namespace runjob::runtime {

/// The processors that this process may run on, as the bits of bytes; for the other ranks.
std::string own_processors();

/// For the ranks whose own_processors() these are, in the control group of this process.
double processor_share(const std::vector<std::string>& processors);

/// The smallest quota of the control group of `self` (the text of /proc/self/cgroup) and those above it, in processors;
/// infinite when there is none. `mount`: where the hierarchies are mounted: "/sys/fs/cgroup".
double control_group_quota(const std::string& self, const std::string& mount);

}  // namespace runjob::runtime
