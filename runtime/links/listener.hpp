#pragma once

#include <string>

#include "base/unique_handle.hpp"
#include "runtime/links/link_address.hpp"

namespace runjob::runtime {

/// A TCP socket that other ranks connect to. It does not block.
struct Listener {
  UniqueFd socket;
  LinkAddress address;
};

/// Listens on any free port of `address`, which is numeric, for a group of `size` members. The nonce is random.
/// Errors  Error(kConnect).
Listener listen_for_members(const std::string& address, int size);

}  // namespace runjob::runtime
