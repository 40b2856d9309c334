#pragma once

#include <gloo/context.h>

#include "runtime/collectives/transport.hpp"

namespace runjob::runtime {

/// Gloo's algorithms over a transport of ours: Gloo opens no socket and has no thread. Its messages are the
/// transport's, with Gloo's slots as tags. A receive names one sender, which is enough for the
/// collectives of Gloo that we call.
/// Owner    `transport` is lent and outlives the context.
/// Threads  as Transport.
/// Errors   the functions that Gloo calls throw Error with the transport's status, through Gloo.
class GlooContext : public gloo::Context {
 public:
  GlooContext(int rank, int size, Transport& transport);
};

}  // namespace runjob::runtime
