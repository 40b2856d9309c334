#pragma once

#include <chrono>
#include <vector>

#include "hostfile/allocation.hpp"
#include "rendezvous/protocol.hpp"
#include "rendezvous/server/service.hpp"

/// Translates an allocation into the types of the rendezvous. Pure functions.
namespace runjob {

rendezvous::Place rank_place(const Allocation& allocation, const Placement& placement,
                             std::chrono::milliseconds start_timeout);

rendezvous::Topology topology_of(const Allocation& allocation);

/// By rank.
std::vector<rendezvous::Member> members_of(const Allocation& allocation);

}  // namespace runjob
