#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/collectives/device_backend.hpp"
#include "runtime/collectives/nccl/communicator.hpp"

namespace runjob::runtime::nccl {

/// The environment's part in a backend.
struct NcclSettings {
  std::string library;     ///< RUNJOB_NCCL_LIBRARY; empty: see nccl::library()
  std::string host_id;     ///< NCCL_HOSTID
  bool may_share = false;  ///< NCCL_MULTI_RANK_GPU_ENABLE=1
};

/// The verdict of all ranks on how they use their GPUs, the same on all of them.
struct Agreement {
  std::shared_ptr<Communicator> communicator = {};  ///< null: copies through the host take its place
  const Library* library = nullptr;                 ///< of the communicator
  bool is_ordered = false;                          ///< some rank may have communicators beside this one
};

/// Gives this rank's bytes, of which each rank has the same number, to all ranks, over the host's backend.
/// Errors  Error: the backend's.
std::vector<std::string> give_to_all(const DeviceOptions& options, const std::string& own);

/// Exchanges the ranks' offers, and connects the GPUs where that is possible. `stream` is the communicator's, and lent.
/// Blocks, until `is_given_up` returns true.
/// Errors  Error: those of give_to_all() and Communicator::set_up(); kProtocol.
Agreement agree(const DeviceOptions& options, const NcclSettings& settings, cuda::Gpu& gpu, cuda::Stream stream,
                const std::function<bool()>& is_given_up);

}  // namespace runjob::runtime::nccl
