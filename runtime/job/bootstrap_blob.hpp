#pragma once

#include <cstdint>
#include <string>

namespace runjob::runtime {

/// The information that a rank gives all others before it connects to them: through the rendezvous at init(), over the
/// job for a process set.
struct BootstrapBlob {
  std::string error;                 ///< the reason why this rank cannot take part; all other fields are empty then
  std::string mesh;                  ///< the address of its backend, bytes
  std::string process_sets;          ///< for a job: the sets that init() is to make, as text; the same on all ranks
  std::string messages;              ///< for a job: the address where it listens for messages, bytes (LinkAddress)
  std::string control;               ///< rank 0: the address of its control listener, bytes (LinkAddress)
  std::uint32_t cache_capacity = 0;  ///< the capacity of all ranks' response caches
  // The threshold for all ranks' fusion.
  std::uint64_t fusion_threshold = 0;
  bool mixes_groups = true;

  bool operator==(const BootstrapBlob&) const = default;
};

/// The blob as CBOR.
std::string encode(const BootstrapBlob& blob);
/// The inverse of encode(). `whose`: the rank that has sent `bytes`, for the error.
/// Errors  Error(kProtocol).
BootstrapBlob decode_bootstrap_blob(const std::string& bytes, const std::string& whose);

}  // namespace runjob::runtime
