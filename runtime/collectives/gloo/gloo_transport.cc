#include "runtime/collectives/gloo/gloo_transport.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <poll.h>
#include <stdexcept>
#include <sys/socket.h>
#include <utility>

#include <fmt/format.h>
#include <gloo/transport/address.h>
#include <gloo/transport/unbound_buffer.h>

#include "runtime/collectives/gloo/gloo_device.hpp"
#include "runtime/collectives/gloo/pair_addresses.hpp"
#include "runtime/collectives/gloo/sigpipe_block.hpp"

namespace runjob::runtime {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kSlot = 0;  ///< of each short pair's only registered buffer

std::string address_of(gloo::transport::Context& context, int peer) {
  const std::vector<char> bytes = context.getPair(peer)->address().bytes();
  return {bytes.data(), bytes.size()};
}

bool is_timeout(std::string_view text) {
  return text.find("Timed out") != text.npos || text.find("timed out") != text.npos ||
         text.find("timeout") != text.npos;
}

}  // namespace

class GlooTransport::LongBuffer : public TransportBuffer {
 public:
  LongBuffer(const GlooTransport& transport, void* data, std::size_t bytes)
      : transport_(transport), inner_(transport.long_context_->createUnboundBuffer(data, bytes)) {}

  Status send(int peer, std::uint64_t tag, std::size_t offset, std::size_t bytes) override {
    sends_to_ = peer;
    return transport_.guarded(peer, [&] { inner_->send(peer, tag, offset, bytes); });
  }
  Status receive(int peer, std::uint64_t tag, std::size_t offset, std::size_t bytes) override {
    receives_from_ = peer;
    return transport_.guarded(peer, [&] { inner_->recv(peer, tag, offset, bytes); });
  }
  Status wait_sent() override {
    const int peer = std::exchange(sends_to_, -1);
    if (peer < 0) return {};
    return transport_.guarded(peer, [&] { inner_->waitSend(nullptr, transport_.options_.operation_timeout); });
  }
  Status wait_received() override {
    const int peer = std::exchange(receives_from_, -1);
    return transport_.guarded(peer, [&] { inner_->waitRecv(nullptr, transport_.options_.operation_timeout); });
  }

 private:
  const GlooTransport& transport_;
  int sends_to_ = -1, receives_from_ = -1;
  const std::unique_ptr<gloo::transport::UnboundBuffer> inner_;
};

GlooTransport::GlooTransport(const TransportOptions& options) : options_(options), spin_(options.spin) {
  const SigpipeBlock block;  // for Gloo's own thread, which starts here
  device_ = make_gloo_device(options.bind_address);
  const int size = static_cast<int>(options.ranks.size());
  short_context_ = device_->createContext(options.member, size);
  short_context_->setTimeout(options.connect_timeout);
  long_context_ = std::make_shared<AbortableTransport>(device_->createContext(options.member, size));
  long_context_->set_timeout(options.connect_timeout);
  PairAddresses addresses;
  for (const int peer : options.short_peers) {
    short_context_->createPair(peer);
    addresses[{Way::kShort, peer}] = address_of(*short_context_, peer);
  }
  for (const int peer : options.long_peers) {
    long_context_->createPair(peer);
    addresses[{Way::kLong, peer}] = address_of(*long_context_, peer);
  }
  address_ = encode(addresses);
}

GlooTransport::~GlooTransport() {
  abort();
  const SigpipeBlock block;
  mailboxes_.clear();
  short_context_.reset();
  long_context_.reset();
  device_.reset();
}

Status GlooTransport::connect(const std::vector<std::string>& addresses) {
  const SigpipeBlock block;
  try {
    connect_pairs(addresses);
    for (const int peer : options_.short_peers) open_mailbox(peer, addresses);
  } catch (const std::exception& error) {
    const MutexLock lock(mutex_);
    if (aborted_) return Status(Errc::kAborted, "ended while connecting");
    return Status(is_timeout(error.what()) ? Errc::kTimeout : Errc::kPeerLost, error.what());
  }
  return greet();
}

/// Whoever has sent this reads by itself from now on, so what comes stays in the socket until it is asked for. The greeting
/// itself may have been read by Gloo's thread before that; therefore its socket is not looked at.
Status GlooTransport::greet() {
  const std::byte greeting{};
  for (const int peer : options_.short_peers) {
    const Status status = send_short(peer, &greeting, sizeof greeting);
    if (!status.ok()) return status;
  }
  for (const int peer : options_.short_peers) {
    const Status status = guarded(peer, [&] { mailboxes_.at(peer).incoming->waitRecv(); });
    if (!status.ok()) return status;
  }
  return {};
}

void GlooTransport::connect_pairs(const std::vector<std::string>& addresses) {
  const PairAddresses own = decode_pair_addresses(address_);
  std::map<std::pair<Way, int>, std::string> theirs;
  {
    const MutexLock lock(mutex_);
    for (const auto& [key, address] : own) {
      const PairAddresses all = decode_pair_addresses(addresses.at(static_cast<std::size_t>(key.second)));
      const auto found = all.find({key.first, options_.member});
      if (found == all.end()) throw std::runtime_error(name(key.second) + " has no address for this rank");
      theirs[key] = found->second;
      own_.push_back(endpoint_of(address));
      peers_.push_back(endpoint_of(found->second));
    }
    if (aborted_) throw std::runtime_error("aborted");
  }
  for (const auto& [key, address] : theirs) {
    const auto [way, peer] = key;
    try {
      auto& pair = way == Way::kShort ? short_context_->getPair(peer) : long_context_->getPair(peer);
      pair->connect({address.begin(), address.end()});
    } catch (const std::exception& error) {
      throw std::runtime_error(fmt::format("connecting to {}: {}", name(peer), error.what()));
    }
  }
  long_context_->set_timeout(options_.operation_timeout);
}

void GlooTransport::open_mailbox(int peer, const std::vector<std::string>& addresses) {
  Mailbox& mailbox = mailboxes_[peer];
  mailbox.memory = std::make_unique<std::byte[]>(2 * kMostShortBytes);
  auto& pair = short_context_->getPair(peer);
  mailbox.incoming = pair->createRecvBuffer(kSlot, mailbox.memory.get(), kMostShortBytes);
  mailbox.outgoing = pair->createSendBuffer(kSlot, mailbox.memory.get() + kMostShortBytes, kMostShortBytes);
  pair->setSync(true, false);
  const PairAddresses theirs = decode_pair_addresses(addresses.at(static_cast<std::size_t>(peer)));
  mailbox.socket = find_socket(endpoint_of(decode_pair_addresses(address_).at({Way::kShort, peer})),
                               endpoint_of(theirs.at({Way::kShort, options_.member})));
}

Status GlooTransport::send_short(int peer, const void* data, std::size_t bytes) {
  Mailbox& mailbox = mailboxes_.at(peer);
  return guarded(peer, [&] {
    std::memcpy(mailbox.memory.get() + kMostShortBytes, data, bytes);
    mailbox.outgoing->send(0, bytes);
    mailbox.outgoing->waitSend();
  });
}

Status GlooTransport::receive_short(int peer, void* data, std::size_t bytes) {
  Mailbox& mailbox = mailboxes_.at(peer);
  const Status status = wait_readable(peer, mailbox.socket.get());
  if (!status.ok()) return status;
  return guarded(peer, [&] {
    mailbox.incoming->waitRecv();
    std::memcpy(data, mailbox.memory.get(), bytes);
  });
}

/// Looks for a while when there are processors enough, and then sleeps. The while is halved when it was in vain.
Status GlooTransport::wait_readable(int peer, int socket) {
  if (socket < 0) return {};
  const Clock::time_point start = Clock::now();
  char byte;
  do {
    if (::recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    spin_ = std::min<std::chrono::nanoseconds>(2 * spin_, options_.spin);
    return {};
  } while (Clock::now() < start + spin_);
  spin_ = std::max<std::chrono::nanoseconds>(spin_ / 2, options_.spin / 32);
  const Clock::time_point deadline = start + options_.operation_timeout;
  pollfd event{socket, POLLIN, 0};
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    const int ready = ::poll(&event, 1, static_cast<int>(std::clamp<long>(left.count(), 0, 1 << 30)));
    if (ready > 0) return {};
    if (ready == 0) break;
    if (errno != EINTR) return Status(Errc::kSystem, fmt::format("poll: {}", std::strerror(errno)));
  }
  return Status(
      Errc::kTimeout,
      fmt::format("waited {:.3g} s for {}; it may be stopped or very slow; RUNJOB_GLOO_TIMEOUT_SECONDS allows more",
                  std::chrono::duration<double>(options_.operation_timeout).count(), name(peer)));
}

std::unique_ptr<TransportBuffer> GlooTransport::buffer(void* data, std::size_t bytes) {
  return std::make_unique<LongBuffer>(*this, data, bytes);
}

void GlooTransport::abort() {
  std::vector<Endpoint> own, peers;
  {
    const MutexLock lock(mutex_);
    aborted_ = true;
    own = own_;
    peers = peers_;
  }
  shut_down_sockets(own, peers);
  long_context_->abort();
}

template <class Action>
Status GlooTransport::guarded(int peer, Action action) const {
  try {
    action();
    return {};
  } catch (const std::exception& error) {
    const MutexLock lock(mutex_);
    if (aborted_) return Status(Errc::kAborted, "the exchange was ended");
    return Status(is_timeout(error.what()) ? Errc::kTimeout : Errc::kPeerLost,
                  fmt::format("{}: Gloo: {}", name(peer), error.what()));
  }
}

std::string GlooTransport::name(int peer) const {
  return fmt::format("rank {}", options_.ranks.at(static_cast<std::size_t>(peer)));
}

}  // namespace runjob::runtime
