#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/collectives/backend.hpp"

/// The one place that knows which backends exist. All but the local one and shared memory are modules of their own, opened
/// on demand from the folder `runjob` beside librunjob.so, so that nothing here needs their libraries to be installed.
namespace runjob::runtime {

/// The backend for ranks that are all on this host. It never fails: all ranks ask judge_sharing() about the addresses of
/// all, and use make_backend() instead when there is an objection. `socket_directory`: a directory of this user alone,
/// for a socket's file while the ranks connect; empty for a fresh one.
std::unique_ptr<Backend> make_shared_memory_backend(const MeshOptions& options, const std::string& socket_directory);

/// The backend for ranks on several hosts, `options.hosts`, with shared memory within each; what holds for
/// make_shared_memory_backend() holds here.
/// Errors  Error(kUnavailable) when there is none.
std::unique_ptr<Backend> make_hierarchical_backend(const MeshOptions& options, const std::string& socket_directory);

/// What the ranks' addresses say of shared memory.
struct SharingVerdict {
  bool is_used = false;
  /// Some ranks gave addresses of shared memory, but not all can use it, and this is why. All need other ones now.
  std::string objection;
};
/// `hosts`: as MeshOptions::hosts.
SharingVerdict judge_sharing(const std::vector<std::string>& addresses, const std::vector<int>& hosts = {});

/// The backend for a job of this kind: none but the local one for a single rank, Gloo otherwise.
/// Errors  Error(kUnavailable) with the reason.
std::unique_ptr<Backend> make_backend(const MeshOptions& options);

/// What is there: {"backends": [{"name", "kind", "available", "version", "path", "reason"}, ...]}. Opens the
/// modules.
std::string backends_json();

}  // namespace runjob::runtime
