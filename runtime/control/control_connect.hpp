#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "base/unique_handle.hpp"
#include "runtime/control/control_channel.hpp"

/// Setting up control channels between members of a group, which have numbers: some listen, others connect to them and prove with
/// the listener's token that they belong to the group. Blocking, with a deadline. TCP on numeric addresses.
namespace runjob::runtime {

using Deadline = std::chrono::steady_clock::time_point;

/// When a wait ends without what it waits for.
struct WaitLimits {
  Deadline deadline;
  int cancel = -1;              ///< a descriptor: becoming readable ends the wait; -1 for none
  std::vector<int> names = {};  ///< the ranks' numbers in their job, for messages; empty: the same as here
};

struct ControlListener {
  UniqueFd socket;
  std::uint16_t port = 0;
};

/// 128 random bits.
std::string make_token();

/// Listens on any free port of `address`, for a group of `size`.
/// Errors  Error(kConnect).
ControlListener listen_for_members(const std::string& address, int size);

/// Waits until every member with a number above `own` has said hello; the result's index is the number, the others stay unused.
/// A connection that does not present the token is dropped. `names`: by number.
/// Errors  Error: kTimeout naming the missing members, kAborted when cancelled.
std::vector<ControlChannel> accept_members(const ControlListener& listener, const std::string& token, int own,
                                           const std::vector<std::string>& names, const WaitLimits& limits);

/// Where a member listens, and what it wants to hear there.
struct ControlAddress {
  std::string address;  ///< numeric
  std::uint16_t port = 0;
  std::string token;

  bool operator==(const ControlAddress&) const = default;
};

/// `own`: the number of who connects. `name`: of who listens.
/// Errors  Error: kConnect and kTimeout naming the address, kAborted when cancelled.
ControlChannel connect_to_member(const ControlAddress& to, int own, const std::string& name, const WaitLimits& limits);

}  // namespace runjob::runtime
