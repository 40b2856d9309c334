#pragma once

#include <string>

namespace runjob::runtime {

/// The address of a rank's hierarchical backend, as a value: everything that the other ranks need to reach it.
struct HostOffer {
  std::string
      sharing;  ///< an encoded SharingOffer; "" when the backend shares no memory although other ranks are on its host
  std::string processors;  ///< own_processors()
  std::string transport;   ///< the address of its transport; "" for a rank without one
  std::string flat;        ///< the address of its flat mesh; "" when no collective uses one
  std::string leader;      ///< where the leader of a group listens for the other leaders; "" for the other ranks
  std::string settings;    ///< the settings that all ranks must have alike, as text

  bool operator==(const HostOffer&) const = default;
};

std::string encode(const HostOffer& offer);
/// `rank`: the rank that has sent `address`, for the error.
/// Errors  Error(kProtocol).
HostOffer decode_host_offer(const std::string& address, int rank);
/// True for the address of a hierarchical backend, false for the addresses of other backends.
bool is_host_offer(const std::string& address);

}  // namespace runjob::runtime
