#pragma once

#include <cstdint>
#include <string>

namespace runjob::runtime {

/// What a rank tells all others before it connects to them: through the rendezvous at init(), over the job for a process set.
struct BootstrapBlob {
  std::string error;         ///< why this rank cannot take part; everything else is empty then
  std::string mesh;          ///< its backend's address, bytes
  std::string process_sets;  ///< of a job: those that init() is to make, as text; the same on all ranks
  // Rank 0's only: where the others reach its control listener, and what they say there.
  std::string control_address;
  std::uint16_t control_port = 0;
  std::string token;
  std::uint32_t cache_capacity = 0;  ///< of everybody's response cache
  // Of everybody's fusion.
  std::uint64_t fusion_threshold = 0;
  bool mixes_groups = true;

  bool operator==(const BootstrapBlob&) const = default;
};

/// CBOR.
std::string encode(const BootstrapBlob& blob);
/// Errors  Error(kProtocol).
BootstrapBlob decode_bootstrap_blob(const std::string& bytes);

}  // namespace runjob::runtime
