#pragma once

#include <vector>

#include "hostfile/allocation.hpp"
#include "launcher/elastic/membership.hpp"

namespace runjob {

/// The allocation of one generation. It has the hosts with members only, in the order of their first rank; `job_hosts`
/// receives the index of each among `hosts`. A member keeps its local rank, so local ranks may have holes, and one may
/// be as large as the local size. Pure.
Allocation elastic_allocation(const std::vector<Host>& hosts, const std::vector<Membership::Member>& members,
                              std::vector<int>& job_hosts);

}  // namespace runjob
