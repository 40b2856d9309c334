#include "runtime/collectives/tcp/tcp_transport.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <poll.h>
#include <sys/socket.h>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/process/time_limit.hpp"
#include "runtime/links/congestion_control.hpp"
#include "runtime/links/link_setup.hpp"
#include "runtime/links/silence_watch.hpp"

namespace runjob::runtime {
namespace {

constexpr char kEnded[] = "the exchange was ended";

/// So many bytes are enough for the rate of a network with a short round trip. With more of them in a queue on the way,
/// the other direction's acknowledgements wait behind them. Over other networks the kernel chooses. Measured:
/// docs/developers/measurements.md.
constexpr int kSendBufferBytes = 256 << 10;

void limit_send_buffer(int socket) {
  static_cast<void>(::setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &kSendBufferBytes, sizeof kSendBufferBytes));
}

/// The kernel chooses the size again. Linux before 5.14 cannot: the limit stays.
void unlimit_send_buffer(int socket) {
#ifdef SO_BUF_LOCK
  constexpr int kNoLock = 0;
  static_cast<void>(::setsockopt(socket, SOL_SOCKET, SO_BUF_LOCK, &kNoLock, sizeof kNoLock));
#else
  static_cast<void>(socket);
#endif
}

}  // namespace

struct TcpTransport::Peer {
  Peer(LinkStream stream, const LinkPeer& peer, int of_rank, std::atomic<int>& lost)
      : link(std::move(stream)),
        number(of_rank),
        has_short_way(has_short_round_trip(link.socket())),
        rank(peer.name),
        name(fmt::format("{} at {}", rank, peer.address.address)),
        lost_rank(lost) {
    if (has_short_way) limit_send_buffer(link.socket());
  }

  bool is_busy() const { return link.has_unsent() || link.has_awaited(); }
  /// Runs `action` with the link. Errors  the link's, with the peer's name.
  template <class Action>
  auto use(Action action) {
    try {
      return action(link);
    } catch (const Error& error) {
      if (link.error() != 0) lost_rank = number;
      throw Error(error.code(), fmt::format("{}: {}", name, error.what()));
    }
  }

  /// Errors  Error(kPeerLost): the peer's host is out of reach.
  void look(Clock::time_point now) {
    const std::optional<std::string> silence = find_silence(watch, link.socket(), now);
    if (!silence) return;
    lost_rank = number;
    throw Error(Errc::kPeerLost, fmt::format("{}: {}", rank, *silence));
  }

  TcpLink link;
  int number;          ///< in the job
  bool has_short_way;  ///< so that its send buffer has a limit
  std::string rank, name;
  SilenceWatch watch;
  std::atomic<int>& lost_rank;  ///< the transport's
};

/// At most one message each way at a time.
class TcpTransport::Buffer : public TransportBuffer {
 public:
  Buffer(TcpTransport& transport, void* data, std::size_t bytes)
      : transport_(transport), data_(static_cast<std::byte*>(data)), bytes_(bytes) {}
  ~Buffer() override {
    forget(sends_to_, sent_);
    forget(receives_from_, received_);
  }

  Status send(int peer, std::uint64_t tag, std::size_t offset, std::size_t bytes) override {
    return begin(peer, offset, bytes, sent_, sends_to_,
                 [&](TcpLink& link) { link.send(tag, data_ + offset, bytes, sent_); });
  }
  Status receive(int peer, std::uint64_t tag, std::size_t offset, std::size_t bytes) override {
    return begin(peer, offset, bytes, received_, receives_from_,
                 [&](TcpLink& link) { link.receive(tag, data_ + offset, bytes, received_); });
  }
  Status wait_sent() override {
    return transport_.guarded([this] { transport_.wait(sends_to_, sent_); });
  }
  Status wait_received() override {
    return transport_.guarded([this] { transport_.wait(receives_from_, received_); });
  }

 private:
  template <class Begin>
  Status begin(int peer, std::size_t offset, std::size_t bytes, const LinkRequest& request, int& of, Begin begin_it) {
    if (!request.is_done) return Status(Errc::kBug, "two messages of a kind in one buffer");
    if (bytes == 0 || offset > bytes_ || bytes > bytes_ - offset)
      return Status(Errc::kBug, "a message outside of its buffer");
    of = peer;
    return transport_.guarded([&] { transport_.peer(peer).use(begin_it); });
  }

  void forget(int peer, const LinkRequest& request) {
    if (request.is_done || transport_.peer(peer).link.forget(request)) return;
    if (transport_.failure_.ok()) transport_.failure_ = Status(Errc::kAborted, "a message was given up half-way");
  }

  TcpTransport& transport_;
  std::byte* const data_;
  const std::size_t bytes_;
  LinkRequest sent_, received_;
  int sends_to_ = -1, receives_from_ = -1;
};

TcpTransport::TcpTransport(const TransportOptions& options)
    : options_(options), listener_(listen_for_members(options.bind_address, static_cast<int>(options.ranks.size()))) {}

TcpTransport::~TcpTransport() = default;

std::string TcpTransport::address() const {
  return encode(listener_.address);
}

Status TcpTransport::connect(const std::vector<std::string>& addresses) {
  return guarded([&] {
    connect_all(addresses);
    connected_ = true;
    if (aborted_) shut_down();
    throw_if_unusable();
  });
}

void TcpTransport::connect_all(const std::vector<std::string>& addresses) {
  LinkPlan plan;
  plan.own = options_.member;
  plan.deadline = Clock::now() + options_.connect_timeout;
  plan.cancel = wake_.get();
  plan.purpose = "data between ranks";
  std::vector<rendezvous::Nonce> nonces;
  for (std::size_t member = 0; member < addresses.size(); ++member) {
    const std::string name = fmt::format("rank {}", options_.ranks.at(member));
    const LinkPeer peer{decode_link_address(addresses[member], name), name};
    nonces.push_back(peer.address.nonce);
    const auto is_in = [&](const std::vector<int>& list) {
      return std::find(list.begin(), list.end(), static_cast<int>(member)) != list.end();
    };
    if (is_in(options_.short_peers) || is_in(options_.long_peers)) plan.peers[static_cast<int>(member)] = peer;
  }
  plan.encrypts = options_.encrypts;
  plan.key = make_link_key(options_.job_key, "runjob data 2: key", nonces);
  for (auto& [member, stream] : connect_links(listener_.socket.get(), plan)) {
    const int rank = options_.ranks.at(static_cast<std::size_t>(member));
    peers_.emplace(member, std::make_unique<Peer>(std::move(stream), plan.peers.at(member), rank, lost_rank_));
  }
  listener_.socket.reset();
}

/// Runs `action` and turns what it throws into the transport's failure.
template <class Action>
Status TcpTransport::guarded(Action action) {
  try {
    throw_if_unusable();
    action();
    return {};
  } catch (const Error& error) {
    failure_ = aborted_ ? Status(Errc::kAborted, kEnded) : Status(error);
  } catch (const std::exception& error) {
    failure_ = Status(Errc::kSystem, error.what());
  }
  return failure_;
}

Status TcpTransport::send_short(int peer, const void* data, std::size_t bytes) {
  return guarded(
      [&] { this->peer(peer).use([&](TcpLink& link) { link.send_copy(TcpLink::kShortTag, data, bytes); }); });
}

Status TcpTransport::receive_short(int peer, void* data, std::size_t bytes) {
  LinkRequest request;
  return guarded([&] {
    this->peer(peer).use([&](TcpLink& link) { link.receive(TcpLink::kShortTag, data, bytes, request); });
    wait(peer, request);
  });
}

Status TcpTransport::flush() {
  return guarded([&] {
    for (const auto& [member, peer] : peers_) wait_until(member, [&peer = *peer] { return !peer.link.has_unsent(); });
  });
}

void TcpTransport::set_one_way(int peer, bool is_one_way) {
  const Peer& other = this->peer(peer);
  if (!other.has_short_way) return;
  is_one_way ? unlimit_send_buffer(other.link.socket()) : limit_send_buffer(other.link.socket());
}

std::unique_ptr<TransportBuffer> TcpTransport::buffer(void* data, std::size_t bytes) {
  return std::make_unique<Buffer>(*this, data, bytes);
}

bool TcpTransport::move() {
  static_cast<void>(guarded([this] { move_all(); }));
  if (!failure_.ok()) return false;
  return std::any_of(peers_.begin(), peers_.end(), [](const auto& peer) { return peer.second->is_busy(); });
}

void TcpTransport::pause(std::chrono::microseconds most) {
  static_cast<void>(guarded([&] { sleep(Clock::now() + most); }));
}

void TcpTransport::wait(int peer, const LinkRequest& request) {
  wait_until(peer, [&request] { return request.is_done; });
}

/// Waits for the peer. Spins for a while when there are processors enough, and then sleeps. The time limit
/// is for the peer's silence: as long as bytes move it begins anew.
template <class IsOver>
void TcpTransport::wait_until(int peer, IsOver is_over) {
  Clock::time_point idle_since;  // the epoch while bytes move
  TimeLimit limit(options_.operation_timeout, idle_since);
  bool has_slept = false;
  while (!is_over()) {
    if (move_all() != 0) {
      if (has_slept) {
        spin_.reached_after_sleep(Clock::now() - idle_since);
      } else if (idle_since != Clock::time_point()) {
        spin_.reached_while_spinning();
      }
      idle_since = {};
      has_slept = false;
      continue;
    }
    throw_if_unusable();
    const Clock::time_point now = Clock::now();
    if (idle_since == Clock::time_point()) {
      idle_since = now;
      limit = TimeLimit(options_.operation_timeout, now);
    }
    if (now - idle_since < spin_.time()) continue;
    if (limit.is_over(now)) {
      throw Error(
          Errc::kTimeout,
          fmt::format("waited {:.3g} s for {}; it may be stopped or very slow; RUNJOB_GLOO_TIMEOUT_SECONDS "
                      "allows more",
                      std::chrono::duration<double>(options_.operation_timeout).count(), this->peer(peer).name));
    }
    sleep(limit.next_look());
    has_slept = true;
  }
}

/// Errors  as TcpLink's, with the peer's name.
std::size_t TcpTransport::move_all() {
  std::size_t moved = 0;
  for (const auto& [member, peer] : peers_) {
    if (!peer->is_busy()) continue;
    moved += peer->use([](TcpLink& link) { return link.move(); });
  }
  if (moved != 0 && moves_ != nullptr)
    moves_->store(moves_->load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  return moved;
}

/// Sleeps until a connection can move on, abort(), the deadline, or the next look at the busy connections.
/// Errors  Error(kPeerLost): a peer's host is out of reach.
void TcpTransport::sleep(Clock::time_point deadline) {
  const Clock::time_point now = Clock::now();
  if (now >= next_look_) {
    next_look_ = now + SilenceWatch::kLookEvery;
    for (const auto& [member, peer] : peers_) {
      if (peer->is_busy()) peer->look(now);
    }
  }
  deadline = std::min(deadline, next_look_);
  events_.assign(1, {wake_.get(), POLLIN, 0});
  for (const auto& [member, peer] : peers_) {
    if (!peer->is_busy()) continue;
    const int wanted = (peer->link.has_unsent() ? POLLOUT : 0) | (peer->link.has_awaited() ? POLLIN : 0);
    events_.push_back({peer->link.socket(), static_cast<short>(wanted), 0});
  }
  const auto left = std::max<std::chrono::nanoseconds>(deadline - now, std::chrono::nanoseconds(0));
  const timespec time{left.count() / 1'000'000'000, left.count() % 1'000'000'000};
  ::ppoll(events_.data(), events_.size(), &time, nullptr);
}

/// Errors  Error with the reason why the transport can no longer be used: abort() was called, or a connection failed.
void TcpTransport::throw_if_unusable() const {
  if (aborted_) throw Error(Errc::kAborted, kEnded);
  failure_.throw_if_failed();
}

void TcpTransport::abort() {
  aborted_ = true;
  wake_.set();
  if (connected_) shut_down();
}

/// Ends the other members' waits for this one. The sockets stay open until the end, so that any thread may do this.
void TcpTransport::shut_down() const {
  for (const auto& [member, peer] : peers_) ::shutdown(peer->link.socket(), SHUT_RDWR);
}

}  // namespace runjob::runtime
