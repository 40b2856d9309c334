#pragma once

#include <string>

namespace runjob::runtime {

/// An identity that differs between any two hosts, and between two network namespaces of one host, such as those of
/// containers. Ranks with the same identity reach each other by loopback.
/// Errors  Error(kUnavailable).
std::string host_identity();

/// The host's name in messages.
std::string host_name();

}  // namespace runjob::runtime
