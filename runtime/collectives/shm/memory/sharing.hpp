#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// The decision whether the ranks of a job can share memory. Each rank decides for itself from the offers of all ranks,
/// so that all come to the same decision. Pure functions, except for this_place().
/// Threads  any.
namespace runjob::runtime {

/// Where a process is, as far as sharing memory with another one depends on it.
struct SharingPlace {
  std::string kernel;   ///< the running kernel
  std::string files;    ///< mount namespace and root directory: where both are equal, a path names the same file
  std::string network;  ///< network namespace: where it is equal, a name without a file names the same socket
  std::string user;     ///< outside of this process's user namespace; empty when that is not known

  bool operator==(const SharingPlace&) const = default;
};

/// A rank's contribution to the decision. Encoded, it is the address of the shared-memory backend.
struct SharingOffer {
  std::string refusal;     ///< the reason why this rank cannot share; the other fields are then empty
  SharingPlace place;      ///< this_place()
  std::string processors;  ///< own_processors()
  std::string path;        ///< of rank 0: the file of the socket from which the others receive the segment
  std::string name;        ///< of rank 0: the same without a file, for ranks with other files
  std::string token;       ///< of rank 0: the secrets by which the two sides know each other there

  bool operator==(const SharingOffer&) const = default;
};

/// Errors  Error(kUnavailable) without /proc.
SharingPlace this_place();

/// The user of this process outside of its user namespace, which `uid_map` describes; empty when it has no name there.
/// Source  user_namespaces(7), /proc/PID/uid_map.
std::string user_outside(std::uint32_t user, const std::string& uid_map);

/// The socket of rank 0's offer that a process in `here` can reach.
const std::string& socket_for(const SharingPlace& here, const SharingOffer& of_owner);

std::string encode(const SharingOffer& offer);
/// `rank`: the rank that has sent `address`, for the error.
/// Errors  Error(kProtocol).
SharingOffer decode_sharing_offer(const std::string& address, int rank);
/// False for the addresses of other backends.
bool is_sharing_offer(const std::string& address);

/// The reason why the ranks with these addresses cannot share memory, naming a rank; nullopt if they can. Ranks in
/// containers of their own can, when these have one network: a descriptor passes through all other namespaces.
/// `ranks`: the ranks of the addresses; empty for ranks 0, 1, 2...
std::optional<std::string> objection_to_sharing(const std::vector<std::string>& addresses,
                                                const std::vector<int>& ranks = {});

}  // namespace runjob::runtime
