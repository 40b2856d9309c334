#pragma once

#include <cstddef>
#include <string>
#include <vector>

/// The addresses of several backends of one rank as one address.
/// Threads  any.
namespace runjob::runtime {

std::string join_addresses(const std::vector<std::string>& addresses);

/// The inverse. `count`: the number of backends of this rank. `rank`: the rank that has sent `address`, for the error.
/// Errors  Error(kProtocol) when `address` is malformed, or of another number of backends.
std::vector<std::string> split_addresses(const std::string& address, std::size_t count, std::size_t rank);

}  // namespace runjob::runtime
