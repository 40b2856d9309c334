#pragma once

#include <vector>

#include "hostfile/allocation.hpp"
#include "launcher/elastic/membership.hpp"
#include "launcher/job_spec/elastic_settings.hpp"

namespace runjob {

/// All hosts with which an elastic job starts, by index: those of the allocation, then those without a rank at first.
std::vector<Host> first_hosts(const Allocation& allocation, const ElasticSettings& settings);

/// The allocation of one generation. It has the hosts with members only, in the order of their first rank; `job_hosts`
/// receives the index of each among `hosts`. A member keeps its local rank, so local ranks may have holes, and one may
/// be as large as the local size. Pure.
Allocation elastic_allocation(const std::vector<Host>& hosts, const std::vector<Membership::Member>& members,
                              std::vector<int>& job_hosts);

}  // namespace runjob
