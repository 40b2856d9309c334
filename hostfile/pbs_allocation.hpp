#pragma once

#include <string_view>
#include <vector>

#include "hostfile/allocation.hpp"

namespace runjob {

/// The hosts in the file PBS_NODEFILE of PBS Pro, OpenPBS and Torque: the name of a host on each line, once for each of
/// its slots (`mpiprocs`, or Torque's `ppn`). Pure; safe on any bytes.
/// Errors  Error(kHostfile) naming `source`, line, column and what was expected; also when there is no host.
std::vector<Host> parse_pbs_nodes(std::string_view text, std::string_view source);

}  // namespace runjob
