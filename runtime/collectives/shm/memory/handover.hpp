#pragma once

#include <string>
#include <vector>

#include "base/unique_handle.hpp"
#include "runtime/control/wait_limits.hpp"

/// How the ranks of a host receive rank 0's descriptor of the segment: over a Unix socket, with SCM_RIGHTS. Only a
/// process of the same user that sends the first half of the token and a missing rank is served. A connection that
/// sends anything else is closed; one that sends nothing delays no other. With the descriptor, rank 0 sends the second
/// half of the token, because any user of the host may listen on a name without a file once rank 0 does not.
/// Source  unix(7): SCM_RIGHTS, SO_PEERCRED, abstract sockets.
namespace runjob::runtime {

/// Rank 0's side.
/// Owner    owns the socket and its file, which exists no longer than this object.
/// Threads  one at a time.
class Handover {
 public:
  /// Makes the socket in `directory`, or in a new directory of mode 0700 if that is empty or too long for a socket's
  /// path.
  /// Errors  Error(kUnavailable).
  explicit Handover(const std::string& directory);
  ~Handover();
  Handover(const Handover&) = delete;
  Handover& operator=(const Handover&) = delete;

  const std::string& path() const { return path_; }
  /// A second socket, "@" and a name without a file, for processes that see other files; empty if there is none.
  const std::string& name() const { return name_; }
  const std::string& token() const { return token_; }

  /// Sends `descriptor` to every rank from 1 to `size` - 1, then removes the socket's file. The caller keeps the
  /// descriptor.
  /// Errors  Error: kTimeout naming the ranks that have not connected, kAborted when cancelled, kSystem.
  void serve(int descriptor, int size, const WaitLimits& limits);

 private:
  void remove_file();

  std::string path_, name_, own_directory_, token_;
  UniqueFd listener_, name_listener_;
};

/// The side of the other ranks: returns the descriptor, which the caller owns. `where`: Handover::path() or name().
/// Errors  Error: kPeerLost if rank 0 has exited or refuses, kTimeout, kAborted when cancelled, kSystem.
UniqueFd receive_descriptor(const std::string& where, const std::string& token, int rank, const WaitLimits& limits);

}  // namespace runjob::runtime
