#pragma once

#include <cstdint>
#include <string>

#include "rendezvous/auth.hpp"

namespace runjob::runtime {

/// The place where a member listens for other members, and the random bytes that it adds to their key.
struct LinkAddress {
  std::string address;  ///< numeric
  std::uint16_t port = 0;
  rendezvous::Nonce nonce{};

  bool operator==(const LinkAddress&) const = default;
};

/// The address as bytes, the same on all hosts of a job.
std::string encode(const LinkAddress& address);
/// The inverse of encode(). `whose`: the member's name, for the error.
/// Errors  Error(kProtocol).
LinkAddress decode_link_address(const std::string& bytes, const std::string& whose);

}  // namespace runjob::runtime
