#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <poll.h>
#include <span>
#include <string>
#include <vector>

#include "base/status.hpp"
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
  /// Each of two members may begin the connection; else the one with the higher number does. Set by LinkSetup.
  bool is_mutual = false;
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

/// Links that a member gets one by one, when it or the peer needs them, by the handshake of connect_links(). Two
/// members that begin at once get one link. Nothing waits: the caller polls.
/// Owner    the listener is lent. `plan.deadline` and `plan.cancel` are not used: a peer may take as long as it likes.
/// Threads  one at a time.
/// Errors   those of connect_links() that concern one peer are values: see take_failures().
class LinkSetup {
 public:
  LinkSetup(int listener, LinkPlan plan);
  ~LinkSetup();

  /// Begins a connection, once for each peer.
  void connect_to(int member);
  /// Appends the descriptors to poll.
  void watch(std::vector<pollfd>& descriptors);
  /// Goes on as far as possible without waiting. `descriptors`: those that the last watch() has appended, after poll();
  /// or none, to take the connections that wait at the listener. Other calls may come between the two.
  void move(std::span<const pollfd> descriptors);
  /// True while a connection is being set up.
  bool is_busy() const;
  /// The longest time after which move() is due without an event; nullopt: any.
  std::optional<std::chrono::milliseconds> most_sleep() const;

  /// The new links, by member, and the reasons of the peers to which there will be none. Each is given once.
  std::map<int, LinkStream> take_links();
  std::map<int, Status> take_failures();

 private:
  class Attempts;
  friend std::map<int, LinkStream> connect_links(int listener, const LinkPlan& plan);

  std::unique_ptr<Attempts> attempts_;
};

}  // namespace runjob::runtime
