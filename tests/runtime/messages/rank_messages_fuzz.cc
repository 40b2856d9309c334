/// Plays another rank that sends messages: any frames, in any order, while this rank posts receives, sends and gives
/// up. Whatever arrives, no byte behind the room of a receive is written, and what breaks the rules must be
/// Error(kProtocol).
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <vector>

#include "base/error.hpp"
#include "runtime/messages/message_peer.hpp"
#include "tests/fuzz.hpp"

using namespace runjob;
using namespace runjob::runtime;

namespace {

constexpr std::size_t kMost = 3000;
constexpr int kPeer = 1;

class Steps {
 public:
  explicit Steps(std::string_view steps)
      : steps_(steps.substr(0, kMost)),
        ranks_(std::make_shared<const std::vector<int>>(std::vector<int>{0, kPeer})),
        in_flight_(0, Members{"a", "b"}),
        peer_(kPeer, /*may_read=*/false, queue_, in_flight_),
        scratch_(4096) {
    int ends[2];
    require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
    other_.reset(ends[0]);
    peer_.connect(LinkStream(UniqueFd(ends[1])));
  }

  void run() {
    try {
      while (!steps_.empty() && peer_.gone().ok()) step(take() % 8);
      for (int i = 0; i < 100; ++i) peer_.move(true, scratch_);
    } catch (const Error& error) {
      require(error.code() == Errc::kProtocol || error.code() == Errc::kPeerLost);
    }
    peer_.lose(Status(Errc::kAborted, "over"));
    for (const SharedOperation& each : in_flight_.find([](const MessageOperation&) { return true; }))
      in_flight_.failed(each, Status(Errc::kAborted, "over"));
    in_flight_.take_finished();
    for (const auto& each : memory_) require(each.size() < 2 || each.back() == '!');  // the byte behind each room
  }

 private:
  unsigned take() {
    if (steps_.empty()) return 0;
    const auto byte = static_cast<unsigned char>(steps_.front());
    steps_.remove_prefix(1);
    return byte;
  }

  void step(unsigned kind) {
    switch (kind) {
      case 0:
        return static_cast<void>(peer_.move(true, scratch_));
      case 1:
        return receive(take() % 3, take());
      case 2:
        return send(take() % 3, take() * 300);
      case 3:  // a short message as the rules want it
        return message(take() % 3, take());
      case 4:  // any header, with small numbers that may be right
        return arrive_header(take() % 12, take() % 2, take() % 3, take(), take() % 8);
      case 5:  // any bytes
        return arrive(std::string(steps_.substr(0, take())));
      case 6:
        return give_up(take());
      default:  // a long length
        return arrive_header(take() % 12, 0, take() % 3, std::uint64_t{1} << (take() % 64), take() % 8);
    }
  }

  SharedOperation begin(bool is_send, std::int64_t tag, std::size_t bytes) {
    memory_.emplace_back(bytes + 1, '!');
    auto operation = std::make_shared<MessageOperation>();
    operation->is_send = is_send;
    operation->number = ++number_;
    operation->peer = kPeer;
    operation->key = {0, tag};
    operation->buffer = reinterpret_cast<std::byte*>(memory_.back().data());
    operation->bytes = bytes;
    operation->ranks = ranks_;
    operation->completion = std::make_shared<Completion>();
    in_flight_.add(operation);
    return operation;
  }

  void send(std::int64_t tag, std::size_t bytes) { peer_.send(begin(true, tag, bytes)); }

  void receive(std::int64_t tag, std::size_t bytes) {
    const SharedOperation operation = begin(false, tag, bytes);
    if (tag == 2) operation->peer = MessageOperation::kAnyPeer;
    bool is_found = false;
    if (std::optional<EarlyMessage> early = queue_.take_message(operation, is_found))
      peer_.deliver(operation, *std::move(early));
  }

  void give_up(std::size_t which) {
    const auto all = in_flight_.find([](const MessageOperation&) { return true; });
    if (all.empty()) return;
    const Status why(Errc::kAborted, "given up");
    peer_.withdraw(all[which % all.size()], why);
    in_flight_.failed(all[which % all.size()], why);
  }

  void message(std::int64_t tag, std::size_t bytes) {
    const Frame frame{.type = FrameType::kEager, .tag = tag, .bytes = bytes};
    arrive({reinterpret_cast<const char*>(&frame), sizeof frame});
    arrive(std::string(bytes, 'm'));
  }

  void arrive_header(unsigned type, std::int64_t set, std::int64_t tag, std::uint64_t bytes, std::uint64_t id) {
    const Frame frame{
        .type = static_cast<FrameType>(type), .set = set, .tag = tag, .bytes = bytes, .id = id, .address = bytes};
    arrive({reinterpret_cast<const char*>(&frame), sizeof frame});
  }

  void arrive(std::string_view bytes) {
    static_cast<void>(::send(other_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL));
  }

  std::string_view steps_;
  UniqueFd other_;
  std::shared_ptr<const std::vector<int>> ranks_;
  std::deque<std::string> memory_;  // of all operations
  std::uint64_t number_ = 0;
  MessageQueue queue_;
  MessagesInFlight in_flight_;
  MessagePeer peer_;
  std::vector<std::byte> scratch_;
};

}  // namespace

void fuzz(std::string_view input) {
  Steps(input).run();
}
