#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/collectives/backend_set.hpp"

/// The only code that knows which backends exist. Gloo and the GPUs have modules of their own, opened on demand from
/// the folder `runjob` beside librunjob.so, so that their libraries need not be installed. The other backends are part
/// of librunjob.so.
namespace runjob::runtime {

/// The user's choices that single backends follow.
struct BackendSettings {
  bool cma = true;               ///< ranks of a host may read each other's memory through the kernel
  bool symmetric_memory = true;  ///< users may allocate memory that the ranks of a host reach directly
  std::shared_ptr<BufferAllocator> job_buffers = nullptr;  ///< a process set's: the buffers of its job's backend
  bool hierarchical_allreduce = true, hierarchical_allgather = true;  ///< these operations use the groups' leaders
  bool gloo = false;  ///< all collectives are Gloo's, among all ranks alike
};

/// The backend of a job with one rank.
std::unique_ptr<Backend> make_local_backend();

/// The backend for ranks that are all on this host. It never fails: all ranks call agree_on_mesh() with the addresses
/// of all, and use make_hierarchical_backend() instead when they cannot share memory. `socket_directory` is a directory
/// of this user alone, for a socket's file while the ranks connect; if empty, a new one is created.
std::unique_ptr<Backend> make_shared_memory_backend(const MeshOptions& options, const BackendSettings& settings,
                                                    const std::string& socket_directory);

/// The backend for ranks in several groups, `options.groups`, with shared memory within each group and TCP between
/// them. All ranks call agree_on_mesh() as above, and make another backend with other groups when not all were made for
/// the same ones.
/// Errors  Error(kUnavailable) when there is no transport.
std::unique_ptr<Backend> make_hierarchical_backend(const MeshOptions& options, const BackendSettings& settings,
                                                   const std::string& socket_directory);

/// Makes the backend of the GPUs, for the ranks that `options` describe.
BackendSet::MakeDevice gpu_maker(const MeshOptions& options, const DeviceTerms& terms);
/// DevicePlugin::leftover(); empty when this process has opened no GPU.
std::string gpu_leftover();

/// A document on all backends: {"backends": [{"name", "kind", "available", "version", "path", "reason"}, ...]}. Opens
/// the modules, and with them the libraries for GPUs, but uses no GPU.
std::string backends_json();

}  // namespace runjob::runtime
