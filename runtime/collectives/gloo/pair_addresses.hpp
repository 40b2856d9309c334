#pragma once

#include <map>
#include <string>
#include <utility>

namespace runjob::runtime {

/// Which of a member's connections a socket address is for.
enum class Way : unsigned char { kShort = 0, kLong = 1 };

/// Where each of a member's pairs listens: the address of its transport. Bytes, Gloo's.
using PairAddresses = std::map<std::pair<Way, int>, std::string>;  // by way and peer

std::string encode(const PairAddresses& addresses);
/// Errors  std::runtime_error when the bytes are cut or of another kind.
PairAddresses decode_pair_addresses(const std::string& bytes);

}  // namespace runjob::runtime
