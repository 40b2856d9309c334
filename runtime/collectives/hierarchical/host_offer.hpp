#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/control/control_connect.hpp"

/// What a rank of a job on several hosts says of itself, and whether all can work together: decided by each rank for itself out
/// of what all have said, so that all decide alike. Pure.
namespace runjob::runtime {

/// As text it is the address of the hierarchical backend.
struct HostOffer {
  std::string sharing;    ///< an encoded SharingOffer: of shared memory with the host's other ranks
  std::string transport;  ///< its transport's address; "" for a rank without one
  std::string flat;       ///< its flat mesh's address; "" when no collective uses one
  ControlAddress leader;  ///< where a host's leader listens for the other leaders
  std::string settings;   ///< what all ranks must have alike

  bool operator==(const HostOffer&) const = default;
};

std::string encode(const HostOffer& offer);
/// Errors  Error(kProtocol).
HostOffer decode_host_offer(const std::string& address);
/// Other backends' addresses are none.
bool is_host_offer(const std::string& address);

/// Why the ranks with these addresses cannot use shared memory within their hosts, naming a rank; nullopt when they can.
/// `hosts`: by rank, equal numbers for ranks on one host.
std::optional<std::string> objection_to_hosts(const std::vector<std::string>& addresses, const std::vector<int>& hosts);

}  // namespace runjob::runtime
