#include "runtime/messages/message_queue.hpp"

#include "tests/catch.hpp"

using namespace runjob::runtime;

namespace {

constexpr MessageKey kKey{0, 7};

SharedOperation receive_from(int peer, const MessageKey& key = kKey) {
  auto receive = std::make_shared<MessageOperation>();
  receive->peer = peer;
  receive->key = key;
  return receive;
}

EarlyMessage message_of(int peer, std::uint64_t id = 0, const MessageKey& key = kKey) {
  EarlyMessage message;
  message.peer = peer;
  message.frame = {.type = id == 0 ? FrameType::kEager : FrameType::kAsk, .set = key.set, .tag = key.tag, .id = id};
  return message;
}

/// True if the receive was posted, because no message was there.
bool is_posted(MessageQueue& queue, const SharedOperation& receive) {
  bool is_found = false;
  return !queue.take_message(receive, is_found) && !is_found;
}

}  // namespace

TEST_CASE("a message goes to the receive that was posted first for it", "[runtime][unit]") {
  MessageQueue queue;
  const SharedOperation of_2 = receive_from(2), any = receive_from(MessageOperation::kAnyPeer), of_1 = receive_from(1);
  for (const SharedOperation& each : {of_2, any, of_1}) CHECK(is_posted(queue, each));
  CHECK(queue.take_receive(1, {0, 8}) == nullptr);
  CHECK(queue.take_receive(1, {1, 7}) == nullptr);
  CHECK(queue.take_receive(1, kKey) == any);
  CHECK(queue.take_receive(1, kKey) == of_1);
  CHECK(queue.take_receive(1, kKey) == nullptr);
  CHECK(queue.take_receive(2, kKey) == of_2);
  CHECK(queue.posted().empty());
}

TEST_CASE("a receive takes the first message of its sender, and from any rank the first one", "[runtime][unit]") {
  MessageQueue queue;
  for (const int peer : {3, 1, 3}) queue.keep(kKey, message_of(peer, /*id=*/static_cast<std::uint64_t>(10 + peer)));
  bool is_found = false;
  const SharedOperation any = receive_from(MessageOperation::kAnyPeer);
  CHECK(queue.take_message(receive_from(1), is_found)->peer == 1);
  CHECK(queue.take_message(any, is_found)->peer == 3);
  CHECK(any->peer == 3);
  CHECK(is_posted(queue, receive_from(1)));
  CHECK(queue.take_message(receive_from(3), is_found)->peer == 3);
  CHECK(queue.kept() == 0);
}

TEST_CASE("a message that is arriving keeps its receive until it is complete", "[runtime][unit]") {
  MessageQueue queue;
  EarlyMessage arriving = message_of(1);
  arriving.is_complete = false;
  EarlyMessage& kept = queue.keep(kKey, std::move(arriving));
  queue.keep(kKey, message_of(1, 5));
  bool is_found = false;
  const SharedOperation first = receive_from(1), second = receive_from(1);
  CHECK_FALSE(queue.take_message(first, is_found));
  CHECK(is_found);
  CHECK(queue.take_message(second, is_found)->frame.id == 5);
  const auto taken = queue.completed(kept);
  REQUIRE(taken);
  CHECK(taken->receive == first);
  CHECK(queue.kept() == 0);
}

TEST_CASE("what is withdrawn or dropped is not matched any more", "[runtime][unit]") {
  MessageQueue queue;
  const SharedOperation receive = receive_from(1);
  CHECK(is_posted(queue, receive));
  queue.withdraw(receive);
  CHECK(queue.take_receive(1, kKey) == nullptr);

  queue.keep(kKey, message_of(1, 5));
  CHECK_FALSE(queue.drop(2, 5));
  CHECK(queue.drop(1, 5));
  CHECK_FALSE(queue.drop(1, 5));

  EarlyMessage eager = message_of(1);
  eager.frame.bytes = 100;
  queue.keep(kKey, std::move(eager));
  queue.keep({3, 7}, message_of(1, 6, {3, 7}));
  CHECK(queue.drop_set(0) == std::map<int, std::size_t>{{1, 100 + sizeof(Frame)}});
  CHECK(queue.kept() == 1);
}
