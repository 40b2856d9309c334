#include "runtime/control/control_channel.hpp"

#include <cstdint>
#include <cstring>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/catch.hpp"
#include "tests/runtime/tcp_pair.hpp"

using namespace runjob::runtime;
using runjob::UniqueFd;

namespace {

struct Ends {
  UniqueFd a, b;
  Ends() {
    int ends[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    a.reset(ends[0]);
    b.reset(ends[1]);
  }
};

std::string length_prefix(std::uint32_t size) {
  std::string bytes(sizeof size, '\0');
  std::memcpy(bytes.data(), &size, sizeof size);
  return bytes;
}

}  // namespace

TEST_CASE("frames arrive whole and in order, empty ones too", "[runtime][net]") {
  Ends ends;
  ControlChannel left(std::move(ends.a)), right(std::move(ends.b));
  left.send("one");
  left.send("");
  left.send(std::string(1000, 'x'));
  right.receive();
  CHECK(right.next_frame() == "one");
  CHECK(right.next_frame() == "");
  CHECK(right.next_frame() == std::string(1000, 'x'));
  CHECK_FALSE(right.next_frame());
  CHECK(right.is_open());
}

TEST_CASE("a frame in parts is one frame, also behind bytes that wait", "[runtime][net]") {
  Ends ends;
  ControlChannel left(std::move(ends.a)), right(std::move(ends.b));
  left.send(ControlChannel::Parts{"head ", "and", " body"});
  right.receive();
  CHECK(right.next_frame() == "head and body");
  const std::string large(8u << 20, 'y');
  left.send(ControlChannel::Parts{"1", large});
  left.send(ControlChannel::Parts{"", "2", ""});
  std::vector<std::string> frames;
  while (frames.size() < 2) {
    left.flush();
    right.receive();
    while (const auto frame = right.next_frame()) frames.emplace_back(*frame);
  }
  CHECK(frames[0] == "1" + large);
  CHECK(frames[1] == "2");
}

TEST_CASE("frames that are kept stay as they are while the channel goes on", "[runtime][net]") {
  Ends ends;
  ControlChannel left(std::move(ends.a)), right(std::move(ends.b));
  ControlChannel::Memory memory;
  std::string_view kept;
  for (int round = 0; round < 3; ++round) {
    const std::string first(5000, static_cast<char>('a' + round));
    left.send(first);
    left.send("second");
    std::optional<std::string_view> frame;
    while (!frame) {
      right.receive();
      frame = right.next_frame();
    }
    right.keep_frames(memory);
    kept = *frame;
    right.receive();
    CHECK(right.next_frame() == "second");
    left.send("third");
    right.receive();
    CHECK(right.next_frame() == "third");
    CHECK(kept == first);
  }
}

TEST_CASE("a long frame is received without bytes of the next one, which keep the socket readable", "[runtime][net]") {
  Ends ends;
  ControlChannel left(std::move(ends.a)), right(std::move(ends.b));
  constexpr int kBytes = 50000;
  for (int i = 0; i < 3; ++i) left.send(std::string(kBytes, 'x'));
  for (int frames_left = 2; frames_left >= 0; --frames_left) {
    while (!right.next_frame()) right.receive();
    int waiting = 0;
    REQUIRE(::ioctl(right.fd(), FIONREAD, &waiting) == 0);
    CHECK(waiting == frames_left * (kBytes + 4));
  }
}

TEST_CASE("a frame that comes byte by byte is put together", "[runtime][net]") {
  Ends ends;
  ControlChannel channel(std::move(ends.a));
  const std::string bytes = length_prefix(3) + "abc" + length_prefix(1) + "d";
  std::vector<std::string> frames;
  for (const char byte : bytes) {
    REQUIRE(::write(ends.b.get(), &byte, 1) == 1);
    channel.receive();
    while (const auto frame = channel.next_frame()) frames.emplace_back(*frame);
  }
  CHECK(frames == std::vector<std::string>{"abc", "d"});
}

TEST_CASE("what a full socket does not take is kept and asked to be polled for", "[runtime][net]") {
  Ends ends;
  ControlChannel left(std::move(ends.a)), right(std::move(ends.b));
  const std::string large(8u << 20, 'y');
  left.send(large);
  CHECK((left.poll_events() & POLLOUT) != 0);
  CHECK(left.has_unacknowledged());
  std::optional<std::string_view> frame;
  while (!frame) {
    right.receive();
    left.flush();
    frame = right.next_frame();
  }
  CHECK(*frame == large);
  CHECK(left.poll_events() == POLLIN);
}

TEST_CASE("bytes are unacknowledged until the other end's kernel has all of them", "[runtime][net]") {
  TcpPair ends;
  ControlChannel left(std::move(ends.near)), right(std::move(ends.far));
  CHECK_FALSE(left.has_unacknowledged());
  left.send(std::string(8u << 20, 'y'));
  CHECK(left.has_unacknowledged());
  while (left.has_unacknowledged()) {
    left.flush();
    right.receive();
  }
  right.receive();
  CHECK(right.next_frame());
}

TEST_CASE("after the peer's end its last frames can still be taken", "[runtime][net]") {
  Ends ends;
  ControlChannel channel(std::move(ends.a));
  {
    ControlChannel peer(std::move(ends.b));
    peer.send("last words");
  }
  channel.receive();
  channel.receive();
  CHECK_FALSE(channel.is_open());
  CHECK(channel.next_frame() == "last words");
  channel.send("nobody reads this");
}

TEST_CASE("a frame beyond the bound closes the channel before any memory is taken for it", "[runtime][net]") {
  Ends ends;
  ControlChannel channel(std::move(ends.a), 64);
  const std::string header = length_prefix(65);
  REQUIRE(::write(ends.b.get(), header.data(), header.size()) == 4);
  channel.receive();
  CHECK_FALSE(channel.next_frame());
  CHECK_FALSE(channel.is_open());
}

TEST_CASE("a moved channel keeps what it has received", "[runtime][net]") {
  Ends ends;
  ControlChannel sender(std::move(ends.a)), first(std::move(ends.b)), second;
  sender.send("a");
  sender.send("b");
  first.receive();
  CHECK(first.next_frame() == "a");
  second = std::move(first);
  CHECK(second.next_frame() == "b");
  CHECK(second.is_open());
}

TEST_CASE("sealed frames arrive, and a connection with bytes that nobody has sealed is closed with the reason",
          "[runtime][net]") {
  const auto key_of = [](unsigned char byte) {
    runjob::SealKey key;
    key.bytes().fill(byte);
    return key;
  };
  Ends ends;
  const int tap = ::dup(ends.a.get());
  const UniqueFd intruder(tap);
  ControlChannel left(LinkStream(std::move(ends.a), {key_of(1), key_of(2)})),
      right(LinkStream(std::move(ends.b), {key_of(2), key_of(1)}));
  const std::string large(300000, 'z');
  left.send(ControlChannel::Parts{"one", " frame"});
  left.send(large);
  std::vector<std::string> frames;
  while (frames.size() < 2) {
    left.flush();
    right.receive();
    while (const auto frame = right.next_frame()) frames.emplace_back(*frame);
  }
  CHECK(frames == std::vector<std::string>{"one frame", large});
  CHECK(right.refusal().empty());
  REQUIRE(::send(intruder.get(), "\0\x14 twenty bytes or more", 22, 0) == 22);
  right.receive();
  CHECK_FALSE(right.is_open());
  CHECK_THAT(right.refusal(), ContainsSubstring("has not sealed"));
}
