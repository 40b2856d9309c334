#include "runtime/collectives/tcp/tcp_link.hpp"

#include <fcntl.h>
#include <numeric>
#include <string>
#include <sys/socket.h>

#include "base/error.hpp"
#include "tests/catch.hpp"

using namespace runjob::runtime;
using runjob::Errc;
using runjob::Error;
using runjob::UniqueFd;

namespace {

runjob::SealKey key_of(unsigned char byte) {
  runjob::SealKey key;
  key.bytes().fill(byte);
  return key;
}

/// Two ends of a connection in this process, with small buffers, so that long messages go in many pieces.
struct Ends {
  explicit Ends(bool is_sealed = false) {
    int sockets[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, sockets) == 0);
    for (const int socket : sockets) {
      const int bytes = 4096;
      ::setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
    }
    const auto link = [&](int socket, unsigned char sending, unsigned char receiving) {
      UniqueFd end(socket);
      return std::make_unique<TcpLink>(is_sealed ? LinkStream(std::move(end), {key_of(sending), key_of(receiving)})
                                                 : LinkStream(std::move(end)));
    };
    near = link(sockets[0], 1, 2);
    far = link(sockets[1], 2, 1);
  }

  /// Moves both ends until nothing moves any more. A sealed record counts once all of it has moved, so that several
  /// calls in a row may return 0.
  void settle() const {
    constexpr int kCallsPerRecord = 64;
    for (int idle = 0; idle < kCallsPerRecord; ++idle) {
      if (near->move() + far->move() > 0) idle = 0;
    }
  }

  std::unique_ptr<TcpLink> near, far;
};

std::vector<int> numbers(std::size_t count, int first) {
  std::vector<int> result(count);
  std::iota(result.begin(), result.end(), first);
  return result;
}

std::size_t bytes_of(const std::vector<int>& data) {
  return data.size() * sizeof(int);
}

Errc code_of(const std::function<void()>& action) {
  try {
    action();
    return Errc::kOk;
  } catch (const Error& error) {
    return error.code();
  }
}

}  // namespace

TEST_CASE("messages arrive in the memory that was asked for, in both directions at the same time", "[runtime]") {
  const Ends ends(GENERATE(false, true));
  const std::vector<int> there = numbers(300000, 1), back = numbers(200000, 7);
  std::vector<int> got_there(there.size()), got_back(back.size());
  LinkRequest sent, received, sent_back, received_back;
  ends.near->receive(2, got_back.data(), bytes_of(back), received_back);
  ends.far->receive(1, got_there.data(), bytes_of(there), received);
  ends.near->send(1, there.data(), bytes_of(there), sent);
  ends.far->send(2, back.data(), bytes_of(back), sent_back);
  CHECK_FALSE(sent.is_done);
  CHECK(ends.near->has_unsent());
  ends.settle();
  CHECK((sent.is_done && received.is_done && sent_back.is_done && received_back.is_done));
  CHECK((got_there == there));
  CHECK((got_back == back));
  CHECK_FALSE((ends.near->has_awaited() || ends.near->has_unsent() || ends.far->has_awaited()));
}

TEST_CASE("many messages in the order of their receivers, in another order, and before they are asked for",
          "[runtime]") {
  const Ends ends(GENERATE(false, true));
  static constexpr int kMessages = 40;
  std::vector<std::vector<int>> sent_data, got;
  std::vector<LinkRequest> sent(kMessages), received(kMessages);
  std::vector<int> order(kMessages);
  std::iota(order.begin(), order.end(), 0);
  const int step = GENERATE(1, 7, 39);  // 1: the senders' order; 39: backwards
  for (int i = 0; i < kMessages; ++i) {
    order[static_cast<std::size_t>(i)] = (i + 1) * step % kMessages;
    sent_data.push_back(numbers(static_cast<std::size_t>(1 + i * 997 % 5000), i));
    got.emplace_back(sent_data.back().size());
  }
  const int asked_before = GENERATE(0, 5, 40);
  const auto ask = [&](int i) {
    const auto at = static_cast<std::size_t>(order[static_cast<std::size_t>(i)]);
    ends.far->receive(at, got[at].data(), bytes_of(got[at]), received[at]);
  };
  for (int i = 0; i < asked_before; ++i) ask(i);
  for (std::size_t i = 0; i < kMessages; ++i) ends.near->send(i, sent_data[i].data(), bytes_of(sent_data[i]), sent[i]);
  ends.settle();
  for (int i = asked_before; i < kMessages; ++i) {
    ask(i);
    ends.settle();
  }
  for (std::size_t i = 0; i < kMessages; ++i) {
    CHECK(received[i].is_done);
    CHECK(sent[i].is_done);
    CHECK(got[i] == sent_data[i]);
  }
}

TEST_CASE("a copied message may be changed at once, also while the connection takes no more", "[runtime]") {
  const Ends ends(GENERATE(false, true));
  std::vector<int> data = numbers(50000, 3), got(50000);
  ends.near->send_copy(TcpLink::kShortTag, data.data(), bytes_of(data));
  data.assign(data.size(), -1);
  LinkRequest received;
  ends.far->receive(TcpLink::kShortTag, got.data(), bytes_of(got), received);
  ends.settle();
  CHECK(received.is_done);
  CHECK(got == numbers(50000, 3));
}

TEST_CASE("an empty message arrives too, before and after it is asked for, and between others", "[runtime]") {
  const Ends ends(GENERATE(false, true));
  std::vector<int> data = numbers(2000, 1), got(data.size());
  LinkRequest empty, early, full;
  ends.far->receive(TcpLink::kShortTag, nullptr, 0, empty);
  ends.near->send_copy(TcpLink::kShortTag, nullptr, 0);
  ends.near->send_copy(TcpLink::kShortTag, nullptr, 0);
  ends.near->send_copy(TcpLink::kShortTag, data.data(), bytes_of(data));
  ends.settle();
  CHECK(empty.is_done);
  LinkRequest other;
  ends.far->receive(3, got.data(), bytes_of(got), other);  // has the link read what is there
  ends.settle();
  ends.far->receive(TcpLink::kShortTag, nullptr, 0, early);
  CHECK(early.is_done);
  ends.far->receive(TcpLink::kShortTag, got.data(), bytes_of(got), full);
  ends.settle();
  CHECK(full.is_done);
  CHECK(got == data);
}

TEST_CASE("a message of another length, and one that no message can be, are errors", "[runtime]") {
  const Ends ends;
  char data[64] = {}, got[64];
  LinkRequest sent, received;
  SECTION("it arrives after it was asked for") {
    ends.far->receive(1, got, 32, received);
    ends.near->send(1, data, 31, sent);
    CHECK(code_of([&] { ends.far->move(); }) == Errc::kProtocol);
  }
  SECTION("it arrives before") {
    LinkRequest other;
    ends.near->send(1, data, 31, sent);
    ends.far->receive(2, got, 1, other);
    ends.far->move();
    CHECK(code_of([&] { ends.far->receive(1, got, 32, received); }) == Errc::kProtocol);
  }
  SECTION("its length is nonsense") {
    ends.far->receive(1, got, 32, received);
    const std::uint64_t header[16] = {1, GENERATE(~std::uint64_t{0}, std::uint64_t{1} << 41)};
    REQUIRE(::send(ends.near->socket(), header, sizeof header, 0) == sizeof header);
    CHECK(code_of([&] { ends.far->move(); }) == Errc::kProtocol);
  }
}

TEST_CASE("a message that nobody has asked for takes memory only as its bytes arrive", "[runtime]") {
  const Ends ends;
  LinkRequest received, unasked;
  char got[4];
  ends.far->receive(1, got, sizeof got, received);
  const std::uint64_t header[16] = {2, std::uint64_t{1} << 40};  // more memory than a machine has
  REQUIRE(::send(ends.near->socket(), header, sizeof header, 0) == sizeof header);
  const std::string some(1000, 'x');
  for (int i = 0; i < 3000; ++i) {  // 3 MB of it
    REQUIRE(::send(ends.near->socket(), some.data(), some.size(), 0) == 1000);
    ends.far->read();
  }
  CHECK_FALSE(received.is_done);
  CHECK(code_of([&] { ends.far->receive(2, got, sizeof got, unasked); }) == Errc::kProtocol);
}

TEST_CASE("a long message is whole, at whatever point of its arrival it is asked for", "[runtime]") {
  const Ends ends(GENERATE(false, true));
  const std::vector<int> data = numbers(3'000'000, 5);
  const std::size_t asked_after = GENERATE(1, 500'000, 1'000'000, 5'000'000, 20'000'000);
  std::vector<int> got(data.size());
  char other = 0;
  LinkRequest sent, sent_other, received, received_other;
  ends.far->receive(2, &other, 1, received_other);
  ends.near->send(1, data.data(), bytes_of(data), sent);
  ends.near->send(2, "b", 1, sent_other);
  std::size_t moved = 0;
  for (int idle = 0; moved < asked_after && idle < 64; ++idle) {
    ends.near->write();
    const std::size_t bytes = ends.far->read();
    moved += bytes;
    if (bytes > 0) idle = 0;
  }
  ends.far->receive(1, got.data(), bytes_of(got), received);
  ends.settle();
  CHECK((received.is_done && received_other.is_done && other == 'b'));
  CHECK((got == data));
}

TEST_CASE("messages that nobody asks for are an error when they are more than a rank can be ahead", "[runtime]") {
  const Ends ends;
  LinkRequest received;
  char got = 0;
  ends.far->receive(1, &got, 1, received);
  const std::uint64_t header[16] = {2, 0};
  const auto flood = [&] {
    for (int i = 0; i < 1 << 21; ++i) {
      while (::send(ends.near->socket(), header, sizeof header, 0) < 0) ends.far->read();
    }
    ends.far->read();
  };
  CHECK_THROWS_WITH(flood(), "it has sent 1048576 messages that nobody has asked for");
}

TEST_CASE("a connection that ends is an error for both", "[runtime]") {
  Ends ends;
  char byte = 0;
  LinkRequest request;
  ends.near->receive(1, &byte, 1, request);
  ends.far.reset();
  CHECK(code_of([&] { ends.near->move(); }) == Errc::kPeerLost);
  LinkRequest sent;
  CHECK(code_of([&] { ends.near->send(2, &byte, 1, sent); }) == Errc::kPeerLost);
}

TEST_CASE("memory is given back: untouched messages without harm, others with the link", "[runtime]") {
  const Ends ends;
  std::vector<int> data = numbers(100000, 0), got(data.size());
  LinkRequest first, second, awaited;
  SECTION("a send that has not begun") {
    ends.near->send(1, data.data(), bytes_of(data), first);
    ends.near->send(2, data.data(), bytes_of(data), second);
    CHECK(ends.near->forget(second));
    CHECK_FALSE(ends.near->forget(first));
  }
  SECTION("a message that is awaited") {
    ends.far->receive(1, got.data(), bytes_of(got), awaited);
    CHECK(ends.far->forget(awaited));
    CHECK_FALSE(ends.far->has_awaited());
  }
  SECTION("a message that is arriving") {
    ends.far->receive(1, got.data(), bytes_of(got), awaited);
    ends.near->send(1, data.data(), bytes_of(data), first);
    ends.far->move();
    CHECK_FALSE(ends.far->forget(awaited));
  }
}
