#pragma once

#include <utility>

#include "runtime/collectives/shm/peer_buffers.hpp"
#include "runtime/collectives/shm/ring.hpp"
#include "runtime/collectives/shm/shm_rounds.hpp"
#include "runtime/collectives/shm/small_exchange.hpp"

namespace runjob::runtime {

/// One rank's ways of talking to the other ranks of its host: what the collectives beside this file are functions of.
/// Threads  one at a time, whichever; but what group and rounds allow to any.
struct Channels {
  Channels(void* segment, const Layout& layout, const GroupOptions& options, PeerOptions peer_options = {})
      : group(segment, layout, options),
        small(group),
        rounds(group, small),
        ring(group),
        peers(group, small, ring, std::move(peer_options)) {}
  Channels(const Channels&) = delete;
  Channels& operator=(const Channels&) = delete;

  Group group;
  SmallExchange small;
  ShmRounds rounds;
  Ring ring;
  PeerBuffers peers;
};

}  // namespace runjob::runtime
