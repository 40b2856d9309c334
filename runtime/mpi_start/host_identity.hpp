#pragma once

#include <string>

namespace runjob::runtime {

/// Differs between any two hosts, and between two network namespaces of one, as containers have: ranks with the same one reach each
/// other by its loopback. Errors  Error(kUnavailable).
std::string host_identity();

/// The name that this host has for people.
std::string host_name();

}  // namespace runjob::runtime
