#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "runtime/collectives/cuda/vendor.hpp"

namespace runjob::runtime::nccl {

/// The account of itself that a rank sends to the others before they make a communicator.
struct Offer {
  int rank = 0;         ///< its number in messages
  int host = 0;         ///< ranks on one host have equal numbers
  std::string host_id;  ///< NCCL_HOSTID: NCCL takes ranks with different ones to be on different hosts
  std::string gpu;      ///< the UUID of its GPU
  const cuda::Vendor* vendor = &cuda::kNvidia;  ///< of the GPU
  int nccl = 0;                                 ///< the version of its NCCL, with its file
  std::string path;
  bool shares_ranks = false;  ///< see DeviceTerms
  bool may_share = false;     ///< NCCL_MULTI_RANK_GPU_ENABLE=1: several ranks may use one GPU, if NCCL is new enough
  bool must_encrypt = false;  ///< the ranks are on several hosts, and what they send each other must be encrypted
  std::string id;             ///< rank 0's: the bytes of the communicator's id
  std::string error;          ///< the reason why this rank cannot take part; empty if it can
};

/// The size of an offer as bytes, the same for all: what does not fit is cut off from `error`.
inline constexpr std::size_t kOfferBytes = 1664;

std::string encode(Offer offer);
/// The inverse of encode(). `rank`: the number in messages of the rank that has sent `bytes`.
/// Errors  Error(kProtocol) that names the rank, also for an offer of another one.
Offer decode_offer(std::string_view bytes, int rank);

/// The reason why the ranks cannot have a communicator; empty when they can. Pure, so that all ranks come to the same
/// verdict from the same offers, which are in the order of the ranks.
std::string objection(std::span<const Offer> offers);

}  // namespace runjob::runtime::nccl
