#pragma once

#include <chrono>
#include <map>
#include <string>

#include "runtime/links/handshake.hpp"
#include "runtime/links/link_address.hpp"
#include "runtime/links/link_stream.hpp"

namespace runjob::runtime {

/// The other end of a link that a member needs.
struct LinkPeer {
  LinkAddress address;  ///< may be empty for a peer that connects to this member
  std::string name;     ///< for messages: "rank 3"
};

struct LinkPlan {
  int own = 0;                    ///< this member
  std::map<int, LinkPeer> peers;  ///< by member
  std::string purpose;            ///< of the port, for the log: "data between ranks"
  LinkKey key;
  bool encrypts = false;  ///< seal all that travels after the handshake; the same on all members
  std::chrono::steady_clock::time_point deadline;
  int cancel = -1;  ///< a descriptor that ends the wait when it becomes readable
};

/// Connects this member to all of its peers: to those with lower numbers, and from those with higher ones, which come
/// to `listener`. Both ends of each connection prove that they hold the key (handshake.hpp). Strangers at the
/// listener are dropped and counted, and the first ten are named in the log; they neither delay nor end the set-up.
/// Blocks. The sockets do not block, and find a host that is gone by keep-alive.
/// Errors  Error: kConnect naming the peer, its address and the system's reason; kAuth when a peer does not prove the
///         key, and when two connections prove to be the same member's, naming both addresses; kMismatch when only one
///         of two members encrypts, on both of them; kTimeout naming the peers that are missing; kAborted when
///         cancelled.
std::map<int, LinkStream> connect_links(int listener, const LinkPlan& plan);

}  // namespace runjob::runtime
