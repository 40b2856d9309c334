#pragma once

#include <optional>
#include <string>
#include <vector>

/// Whether the ranks of a job can share memory, decided by each rank for itself out of what all have said, so that all
/// decide alike. Pure, but for this_host().
namespace runjob::runtime {

/// What a rank says of itself; as text it is the address of the shared-memory backend.
struct SharingOffer {
  std::string refusal;     ///< why this rank cannot; everything else is empty then
  std::string host;        ///< this_host()
  std::string processors;  ///< own_processors()
  std::string path;        ///< rank 0's: the socket where the others get the segment
  std::string token;       ///< rank 0's: what they say there

  bool operator==(const SharingOffer&) const = default;
};

/// What two processes have in common when a path of one is the same file for the other and a descriptor of one may be
/// given to the other: the running kernel, the mount namespace, the root directory and the user.
/// Errors  Error(kUnavailable) without /proc.
std::string this_host();

std::string encode(const SharingOffer& offer);
/// Errors  Error(kProtocol).
SharingOffer decode_sharing_offer(const std::string& address);
/// Other backends' addresses are none.
bool is_sharing_offer(const std::string& address);

/// Why the ranks with these addresses cannot share memory, naming a rank; nullopt when they can.
/// `ranks`: whose addresses they are; empty for ranks 0, 1, 2...
std::optional<std::string> objection_to_sharing(const std::vector<std::string>& addresses,
                                                const std::vector<int>& ranks = {});

}  // namespace runjob::runtime
