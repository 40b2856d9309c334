#pragma once

#include <utility>

#include "runtime/collectives/shm/buffer_exchange.hpp"
#include "runtime/collectives/shm/large_message.hpp"
#include "runtime/collectives/shm/ring.hpp"
#include "runtime/collectives/shm/shm_rounds.hpp"
#include "runtime/collectives/shm/small_exchange.hpp"

namespace runjob::runtime {

/// One rank's means of exchanging messages with the other ranks of its host. The collectives in this folder are
/// functions of it.
/// Owner    the segment is the caller's and outlives the channels; they own everything else.
/// Threads  one at a time, which may change; except for the functions of `group` and `rounds` that allow any thread.
struct Channels {
  Channels(void* segment, const Layout& layout, const GroupOptions& options, BufferOptions buffer_options = {},
           LargeMessageOptions large_options = {})
      : group(segment, layout, options),
        small(group),
        rounds(group, small),
        ring(group),
        buffers(group, small, std::move(buffer_options)),
        large(group, buffers, ring, std::move(large_options)) {}
  Channels(const Channels&) = delete;
  Channels& operator=(const Channels&) = delete;

  Group group;
  SmallExchange small;
  ShmRounds rounds;
  Ring ring;
  BufferExchange buffers;
  LargeMessage large;
};

}  // namespace runjob::runtime
