#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "base/unique_handle.hpp"
#include "runtime/control/control_channel.hpp"

/// Sets up control channels between the members of a group, which have indexes. Some members listen. Others connect to
/// them and prove with the listener's token that they belong to the group. The functions block, with a deadline. They
/// use TCP on numeric addresses.
namespace runjob::runtime {

using Deadline = std::chrono::steady_clock::time_point;

/// The limits of a wait: a deadline and a cancellation.
struct WaitLimits {
  Deadline deadline;
  int cancel = -1;              ///< a descriptor that ends the wait when it becomes readable; -1 for none
  std::vector<int> names = {};  ///< the members' ranks in their job, for messages; empty if equal to the indexes
};

struct ControlListener {
  UniqueFd socket;
  std::uint16_t port = 0;
};

/// A token of 128 random bits.
std::string make_token();

/// Listens on any free port of `address`, for a group of `size`.
/// Errors  Error(kConnect).
ControlListener listen_for_members(const std::string& address, int size);

/// Waits until every member with an index above `own` has identified itself. The position in the result is the member's
/// index; the other positions stay unused. A connection that does not present the token is closed. `names` has the
/// members' names by index.
/// Errors  Error: kTimeout naming the missing members, kAborted when cancelled.
std::vector<ControlChannel> accept_members(const ControlListener& listener, const std::string& token, int own,
                                           const std::vector<std::string>& names, const WaitLimits& limits);

/// The address at which a member listens, and the token that it expects.
struct ControlAddress {
  std::string address;  ///< numeric
  std::uint16_t port = 0;
  std::string token;

  bool operator==(const ControlAddress&) const = default;
};

/// Connects to the member at `to`. `own` is the index of this member, `name` the name of the listening one.
/// Errors  Error: kConnect and kTimeout naming the address, kAborted when cancelled.
ControlChannel connect_to_member(const ControlAddress& to, int own, const std::string& name, const WaitLimits& limits);

}  // namespace runjob::runtime
