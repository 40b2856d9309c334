#pragma once

#include <chrono>
#include <cstddef>

namespace runjob::rendezvous {

/// The limits of an HttpServer.
struct HttpLimits {
  /// At the limit, the oldest connection that has not proved to hold the key is closed. If all have proved it, the new
  /// one is refused.
  std::size_t connections = 1024;
  /// The limit for a request to arrive once it has begun, for a reply to be read, and for a peer to prove that it holds
  /// the key. A connection of a peer that has proved it may be idle for any time.
  std::chrono::milliseconds message_timeout{30000};
};

}  // namespace runjob::rendezvous
