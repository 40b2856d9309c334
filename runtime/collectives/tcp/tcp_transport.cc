#include "runtime/collectives/tcp/tcp_transport.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <fmt/format.h>

#include "base/error.hpp"
#include "rendezvous/hmac.hpp"
#include "runtime/collectives/tcp/link_setup.hpp"

namespace runjob::runtime {
namespace {

/// The address of a member: bytes, the same on all hosts of a job (little-endian, as its tensors are).
struct Address {
  std::uint16_t port = 0;
  rendezvous::Nonce nonce{};
};

std::string encode(const Address& address, const std::string& host) {
  return std::string(reinterpret_cast<const char*>(&address), sizeof address) + host;
}

/// Errors  Error(kProtocol).
LinkPeer decode(const std::string& bytes, std::string name) {
  if (bytes.size() <= sizeof(Address)) throw Error(Errc::kProtocol, fmt::format("the address of {} is cut", name));
  Address address;
  std::memcpy(&address, bytes.data(), sizeof address);
  return {bytes.substr(sizeof address), address.port, std::move(name)};
}

constexpr char kEnded[] = "the exchange was ended";

void set(int socket, int level, int option, int value) {
  static_cast<void>(::setsockopt(socket, level, option, &value, sizeof value));  // a hint: all work without it
}

/// Bytes on their way between two processes of one host stay in its cache; over a network this is enough for 10 Gbit/s
/// and a millisecond.
constexpr int kSendBufferBytes = 512 << 10;

void prepare(int socket) {
  set(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  set(socket, SOL_SOCKET, SO_SNDBUF, kSendBufferBytes);
  // Finds a host that is gone although nothing is being sent to it.
  set(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(socket, IPPROTO_TCP, TCP_KEEPIDLE, 10);
  set(socket, IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set(socket, IPPROTO_TCP, TCP_KEEPCNT, 4);
}

}  // namespace

struct TcpTransport::Peer {
  Peer(UniqueFd socket, std::string peer_name) : link(std::move(socket)), name(std::move(peer_name)) {}

  bool is_busy() const { return link.has_unsent() || link.has_awaited(); }
  /// Runs `action` with the link. Errors  the link's, with the peer's name.
  template <class Action>
  auto use(Action action) {
    try {
      return action(link);
    } catch (const Error& error) {
      throw Error(error.code(), fmt::format("{}: {}", name, error.what()));
    }
  }

  TcpLink link;
  std::string name;
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
    : options_(options),
      nonce_(rendezvous::random_nonce()),
      listener_(listen_for_members(options.bind_address, static_cast<int>(options.ranks.size()))),
      spin_(options.spin) {}

TcpTransport::~TcpTransport() = default;

std::string TcpTransport::address() const {
  return encode(Address{listener_.port, nonce_}, options_.bind_address);
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
  rendezvous::Hmac key(options_.job_key, "runjob data 1: key of a mesh");
  for (std::size_t member = 0; member < addresses.size(); ++member) {
    const LinkPeer peer = decode(addresses[member], fmt::format("rank {}", options_.ranks.at(member)));
    key.add(addresses[member]);
    const auto is_in = [&](const std::vector<int>& list) {
      return std::find(list.begin(), list.end(), static_cast<int>(member)) != list.end();
    };
    if (is_in(options_.short_peers) || is_in(options_.long_peers)) plan.peers[static_cast<int>(member)] = peer;
  }
  plan.key = key.result();
  for (auto& [member, socket] : connect_links(listener_.socket.get(), plan)) {
    prepare(socket.get());
    const LinkPeer& of = plan.peers.at(member);
    peers_.emplace(member, std::make_unique<Peer>(std::move(socket), fmt::format("{} at {}", of.name, of.address)));
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

std::unique_ptr<TransportBuffer> TcpTransport::buffer(void* data, std::size_t bytes) {
  return std::make_unique<Buffer>(*this, data, bytes);
}

bool TcpTransport::move() {
  static_cast<void>(guarded([this] { move_all(); }));
  return failure_.ok() &&
         std::any_of(peers_.begin(), peers_.end(), [](const auto& peer) { return peer.second->is_busy(); });
}

void TcpTransport::pause(std::chrono::microseconds most) {
  sleep(Clock::now() + most);
}

/// Waits until the request is done. Looks for a while when there are processors enough, and then sleeps. The while is
/// halved when it was in vain. The time limit is for the peer's silence: as long as bytes move it begins anew.
void TcpTransport::wait(int peer, const LinkRequest& request) {
  Clock::time_point silent_since = Clock::now();
  while (!request.is_done) {
    if (spin_until_moved(request)) silent_since = Clock::now();
    if (request.is_done) return;
    throw_if_unusable();
    const Clock::time_point deadline = silent_since + options_.operation_timeout;
    if (Clock::now() >= deadline) {
      throw Error(
          Errc::kTimeout,
          fmt::format("waited {:.3g} s for {}; it may be stopped or very slow; RUNJOB_GLOO_TIMEOUT_SECONDS "
                      "allows more",
                      std::chrono::duration<double>(options_.operation_timeout).count(), this->peer(peer).name));
    }
    sleep(deadline);
  }
}

/// Moves bytes as long as some move, and looks for more for a while. True when some have moved.
bool TcpTransport::spin_until_moved(const LinkRequest& request) {
  bool has_moved = false;
  Clock::time_point end;
  for (;;) {
    if (move_all() != 0) {
      has_moved = true;
      end = {};
      if (request.is_done) break;
      continue;
    }
    if (request.is_done || aborted_ || spin_.count() == 0) break;
    const Clock::time_point now = Clock::now();
    if (end == Clock::time_point()) end = now + spin_;
    if (now >= end) {
      spin_ = std::max<std::chrono::nanoseconds>(spin_ / 2, options_.spin / 32);
      return has_moved;
    }
  }
  if (has_moved) spin_ = std::min<std::chrono::nanoseconds>(2 * spin_, options_.spin);
  return has_moved;
}

/// Errors  as TcpLink's, with the peer's name.
std::size_t TcpTransport::move_all() {
  std::size_t moved = 0;
  for (const auto& [member, peer] : peers_) {
    if (!peer->is_busy()) continue;
    moved += peer->use([](TcpLink& link) { return link.move(); });
  }
  return moved;
}

/// Sleeps until a connection can move on, abort(), or the deadline.
void TcpTransport::sleep(Clock::time_point deadline) {
  events_.assign(1, {wake_.get(), POLLIN, 0});
  for (const auto& [member, peer] : peers_) {
    if (!peer->is_busy()) continue;
    const int wanted = (peer->link.has_unsent() ? POLLOUT : 0) | (peer->link.has_awaited() ? POLLIN : 0);
    events_.push_back({peer->link.socket(), static_cast<short>(wanted), 0});
  }
  const auto left = std::max<std::chrono::nanoseconds>(deadline - Clock::now(), std::chrono::nanoseconds(0));
  const timespec time{left.count() / 1'000'000'000, left.count() % 1'000'000'000};
  ::ppoll(events_.data(), events_.size(), &time, nullptr);
}

/// Errors  Error: why nothing works any more.
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
