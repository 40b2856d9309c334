#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "base/unique_handle.hpp"
#include "runtime/engine/control_channel.hpp"

/// Setting up the star of control channels: every rank connects to rank 0 and proves with the job's token
/// that it belongs to it. Blocking, with a deadline. TCP on numeric addresses.
namespace runjob::runtime {

using Deadline = std::chrono::steady_clock::time_point;

struct ControlListener {
  UniqueFd socket;
  std::uint16_t port = 0;
};

/// 128 random bits.
std::string make_token();

/// Listens on any free port of `address`.
/// Errors  Error(kConnect).
ControlListener listen_for_members(const std::string& address, int size);

/// Waits until every rank but 0 has said hello; the result's index is the rank, 0 stays unused. A connection
/// that does not present the token is dropped. Errors  Error(kTimeout) naming the missing ranks; `hosts` are
/// the ranks' hosts.
std::vector<ControlChannel> accept_members(const ControlListener& listener, const std::string& token,
                                           const std::vector<std::string>& hosts, Deadline deadline);

/// Errors  Error(kConnect), Error(kTimeout), naming the address.
ControlChannel connect_to_coordinator(const std::string& address, std::uint16_t port, const std::string& token,
                                      int rank, Deadline deadline);

}  // namespace runjob::runtime
