#pragma once

#include <cstddef>
#include <string>
#include <vector>

/// How many processors the ranks of a host may use together, by their affinities and by the quota of their control
/// group. A rank that is bound to one processor cannot see the processors of the others.
/// Threads  any.
/// Source  sched_getaffinity(2).
namespace runjob::runtime {

/// The processors that this process may run on, as a bit set in bytes, to be sent to the other ranks.
std::string own_processors();

/// The number of processors of the ranks with these own_processors(), in the control group of this process.
double processor_share(const std::vector<std::string>& processors);

/// True when a rank that waits for another host may spin, and keep a processor meanwhile. `processors`:
/// own_processors() of all ranks of the host; `share`: their processor_share(); `rank`: which of them. A rank may spin
/// when no other one may run on its processors, as when each is bound to a core, and also when it may use more
/// processors than there are ranks.
bool has_processor_to_spin(const std::vector<std::string>& processors, double share, std::size_t rank);

}  // namespace runjob::runtime
