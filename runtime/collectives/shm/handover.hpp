#pragma once

#include <string>
#include <vector>

#include "base/unique_handle.hpp"
#include "runtime/control/control_connect.hpp"

/// How the ranks of a host get rank 0's descriptor: over a Unix socket, with SCM_RIGHTS. Only processes of the same user
/// that say the token and a rank are served; whoever says something else, or nothing, is dropped and holds up nobody.
/// Source  unix(7): SCM_RIGHTS, SO_PEERCRED.
namespace runjob::runtime {

/// Rank 0's side. The socket's file exists as long as this object, at most.
class Handover {
 public:
  /// In `directory`; or, when that is empty or its path too long for a socket, in a fresh one of mode 0700.
  /// Errors  Error(kUnavailable).
  explicit Handover(const std::string& directory);
  ~Handover();
  Handover(const Handover&) = delete;
  Handover& operator=(const Handover&) = delete;

  const std::string& path() const { return path_; }
  const std::string& token() const { return token_; }

  /// Gives `descriptor` to every rank from 1 to `size` - 1, then removes the socket's file.
  /// Errors  Error: kTimeout naming the ranks that have not come, kAborted when cancelled, kSystem.
  void serve(int descriptor, int size, const WaitLimits& limits);

 private:
  void remove_file();

  std::string path_, own_directory_, token_;
  UniqueFd listener_;
};

/// The other ranks' side.
/// Errors  Error: kPeerLost when rank 0 has gone or refuses, kTimeout, kAborted when cancelled, kSystem.
UniqueFd receive_descriptor(const std::string& path, const std::string& token, int rank, const WaitLimits& limits);

}  // namespace runjob::runtime
