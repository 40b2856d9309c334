#pragma once

#include <string_view>
#include <vector>

#include "hostfile/allocation.hpp"

namespace runjob {

/// The hosts in LSF's variable LSB_MCPU_HOSTS: hosts and their slots in turn, as in `hostA 2 hostB 4`. Pure; safe on
/// any bytes.
/// Errors  Error(kHostfile) naming `source`, column and what was expected; also when there is no host.
std::vector<Host> parse_lsf_hosts(std::string_view text, std::string_view source);

}  // namespace runjob
