#pragma once

#include "runtime/collectives/shm/ring.hpp"
#include "runtime/collectives/shm/small_exchange.hpp"

namespace runjob::runtime {

/// One rank's two ways of talking to the other ranks of its host: what the collectives beside this file are functions of.
/// Threads  one at a time, whichever; group.end() from any.
struct Channels {
  Channels(void* segment, const Layout& layout, const GroupOptions& options)
      : group(segment, layout, options), small(group), ring(group) {}
  Channels(const Channels&) = delete;
  Channels& operator=(const Channels&) = delete;

  Group group;
  SmallExchange small;
  Ring ring;
};

}  // namespace runjob::runtime
