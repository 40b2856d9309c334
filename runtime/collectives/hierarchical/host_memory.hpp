#pragma once

#include <cstdlib>
#include <memory>
#include <string>

#include "runtime/collectives/hierarchical/exchanges/topology.hpp"
#include "runtime/collectives/shm/memory/handover.hpp"
#include "runtime/collectives/shm/memory/layout.hpp"
#include "runtime/collectives/shm/memory/segment.hpp"
#include "runtime/control/wait_limits.hpp"

namespace runjob::runtime {

/// The memory that the ranks of a host use together: a segment that their leader makes and hands to the others. A rank
/// that is alone on its host has memory of its process instead.
///
/// Life     offer() on every rank; then join() on every rank, with the offer of the host's leader.
/// Owner    the topology is lent. The memory ends with this object.
/// Threads  one at a time.
class HostMemory {
 public:
  HostMemory(const Topology& topology, const Layout& layout) : topology_(topology), layout_(layout) {}

  /// Returns an encoded SharingOffer, with the reason when this rank cannot share memory. `socket_directory`: see
  /// Handover.
  std::string offer(const std::string& socket_directory);
  /// Waits until the host's ranks have the memory. `of_leader`: the offer() of this host's leader; unused by a rank
  /// that is alone. `leader`: the leader's rank, for errors.
  /// Errors  those of Handover and Segment, and Error(kProtocol) for a malformed offer.
  void join(const std::string& of_leader, int leader, const WaitLimits& limits);

  /// As large as the layout. All words in it are zero at first.
  void* data() const { return alone_ ? alone_.get() : segment_.data(); }

 private:
  using PrivateMemory = std::unique_ptr<void, decltype(&std::free)>;

  void allocate();

  const Topology& topology_;
  const Layout layout_;
  std::unique_ptr<Handover> handover_;  ///< the leader's, until all ranks have the segment
  Segment segment_;
  PrivateMemory alone_{nullptr, std::free};
};

}  // namespace runjob::runtime
