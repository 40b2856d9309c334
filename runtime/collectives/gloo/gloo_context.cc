#include "runtime/collectives/gloo/gloo_context.hpp"

#include <deque>
#include <memory>
#include <utility>

#include <gloo/transport/address.h>
#include <gloo/transport/context.h>
#include <gloo/transport/pair.h>
#include <gloo/transport/unbound_buffer.h>

#include "base/error.hpp"

namespace runjob::runtime {
namespace {

using GlooBuffer = gloo::transport::UnboundBuffer;
using Timeout = std::chrono::milliseconds;  // not looked at: the transport has its own limit

/// Gloo begins several messages of one buffer and then waits for each. The waits are in the order of the messages.
class MessageBuffer : public GlooBuffer {
 public:
  MessageBuffer(Transport& transport, void* data, std::size_t bytes) : GlooBuffer(data, bytes), transport_(transport) {}

  void send(int peer, std::uint64_t slot, std::size_t offset, std::size_t bytes) override {
    begin(sent_, peer, offset, bytes,
          [&](TransportBuffer& buffer, std::size_t length) { return buffer.send(peer, slot, offset, length); });
  }
  void recv(int peer, std::uint64_t slot, std::size_t offset, std::size_t bytes) override {
    begin(received_, peer, offset, bytes,
          [&](TransportBuffer& buffer, std::size_t length) { return buffer.receive(peer, slot, offset, length); });
  }
  void recv(std::vector<int> peers, std::uint64_t slot, std::size_t offset, std::size_t bytes) override {
    if (peers.size() != 1) throw Error(Errc::kBug, "Gloo receives from any of several ranks");
    recv(peers.front(), slot, offset, bytes);
  }

  bool waitSend(int* peer, Timeout) override {
    return end(sent_, peer, [](TransportBuffer& buffer) { return buffer.wait_sent(); });
  }
  bool waitRecv(int* peer, Timeout) override {
    return end(received_, peer, [](TransportBuffer& buffer) { return buffer.wait_received(); });
  }
  // These are never called: the transport's abort() ends all waits.
  void abortWaitSend() override {}
  void abortWaitRecv() override {}

 private:
  struct Message {
    int peer;
    std::unique_ptr<TransportBuffer> buffer;  ///< null for an empty one, which is not sent
  };

  template <class Begin>
  void begin(std::deque<Message>& messages, int peer, std::size_t offset, std::size_t bytes, Begin begin_it) {
    const std::size_t length = bytes == kUnspecifiedByteCount ? size - offset : bytes;
    messages.push_back({peer, nullptr});
    if (length == 0) return;
    messages.back().buffer = transport_.buffer(ptr, size);
    begin_it(*messages.back().buffer, length).throw_if_failed();
  }

  template <class Wait>
  static bool end(std::deque<Message>& messages, int* peer, Wait wait) {
    if (messages.empty()) throw Error(Errc::kBug, "Gloo waits for a message that it has not begun");
    const Message message = std::move(messages.front());
    messages.pop_front();
    if (peer != nullptr) *peer = message.peer;
    if (message.buffer) wait(*message.buffer).throw_if_failed();
    return true;
  }

  Transport& transport_;
  std::deque<Message> sent_, received_;
};

/// Gloo checks that it has a pair with each rank, and sends through buffers.
class NoPair : public gloo::transport::Pair {
 public:
  const gloo::transport::Address& address() const override { refuse(); }
  void connect(const std::vector<char>&) override { refuse(); }
  void close() override {}
  void setSync(bool, bool) override { refuse(); }
  std::unique_ptr<gloo::transport::Buffer> createSendBuffer(int, void*, std::size_t) override { refuse(); }
  std::unique_ptr<gloo::transport::Buffer> createRecvBuffer(int, void*, std::size_t) override { refuse(); }
  void send(GlooBuffer*, std::uint64_t, std::size_t, std::size_t) override { refuse(); }
  void recv(GlooBuffer*, std::uint64_t, std::size_t, std::size_t) override { refuse(); }

 private:
  [[noreturn]] static void refuse() { throw Error(Errc::kBug, "Gloo uses a connection of its own"); }
};

class MessageContext : public gloo::transport::Context {
 public:
  MessageContext(int own_rank, int rank_count, Transport& transport)
      : gloo::transport::Context(own_rank, rank_count), transport_(transport) {}

  std::unique_ptr<gloo::transport::Pair>& getPair(int) override { return pair_; }
  std::unique_ptr<gloo::transport::Pair>& createPair(int) override { return pair_; }
  std::unique_ptr<GlooBuffer> createUnboundBuffer(void* data, std::size_t bytes) override {
    return std::make_unique<MessageBuffer>(transport_, data, bytes);
  }

 private:
  Transport& transport_;
  std::unique_ptr<gloo::transport::Pair> pair_ = std::make_unique<NoPair>();
};

}  // namespace

GlooContext::GlooContext(int own_rank, int rank_count, Transport& transport) : gloo::Context(own_rank, rank_count) {
  transportContext_ = std::make_shared<MessageContext>(own_rank, rank_count, transport);
}

}  // namespace runjob::runtime
