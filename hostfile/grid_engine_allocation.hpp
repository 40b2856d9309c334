#pragma once

#include <string_view>
#include <vector>

#include "hostfile/allocation.hpp"

namespace runjob {

/// The hosts in the file PE_HOSTFILE of Grid Engine: on each line a host, its slots, its queue and its processors, as
/// in `s2 4 all.q@s2 UNDEFINED`. A host with slots in several queues has a line for each. Pure; safe on any bytes.
/// Errors  Error(kHostfile) naming `source`, line, column and what was expected; also when there is no host.
std::vector<Host> parse_grid_engine_hosts(std::string_view text, std::string_view source);

}  // namespace runjob
