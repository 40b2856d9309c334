#include "runtime/messages/message_link.hpp"

#include <sys/socket.h>
#include <vector>

#include "base/error.hpp"
#include "tests/catch.hpp"

using namespace runjob::runtime;
using runjob::Errc;
using runjob::Error;
using runjob::UniqueFd;

namespace {

/// Two ends in this process.
struct Pair {
  Pair() {
    int ends[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
    a = std::make_unique<MessageLink>(LinkStream(UniqueFd(ends[0])));
    b = std::make_unique<MessageLink>(LinkStream(UniqueFd(ends[1])));
  }

  std::unique_ptr<MessageLink> a, b;
};

/// Keeps all frames with their bytes.
struct Taken : FrameReceiver {
  std::byte* begin(const Frame& frame) override {
    bytes.assign(payload_of(frame), '?');
    return drops ? nullptr : reinterpret_cast<std::byte*>(bytes.data());
  }
  void end(const Frame& frame) override {
    frames.push_back(frame);
    texts.push_back(bytes);
  }

  bool drops = false;
  std::string bytes;
  std::vector<Frame> frames;
  std::vector<std::string> texts;
};

std::vector<std::byte> scratch(1000);

}  // namespace

TEST_CASE("frames arrive in order with their bytes", "[runtime][unit]") {
  Pair pair;
  const std::string text = "short", longer(100'000, 'x');
  std::vector<MessageLink::Sender> done;
  pair.a->send({.type = FrameType::kEager, .tag = 7, .bytes = text.size()}, text.data());
  pair.a->send({.type = FrameType::kGrant, .id = 3});
  pair.a->send({.type = FrameType::kData, .bytes = longer.size(), .id = 4}, longer.data(), &longer);
  Taken taken;
  while (taken.frames.size() < 3) {
    pair.a->write(done);
    pair.b->read(taken, scratch);
  }
  CHECK(taken.texts == std::vector<std::string>{text, "", longer});
  CHECK(taken.frames[0].tag == 7);
  CHECK(taken.frames[1].id == 3);
  CHECK(done == std::vector<MessageLink::Sender>{&longer});
  CHECK_FALSE(pair.a->has_unsent());
}

TEST_CASE("memory that is taken back is not read any more, and its frame arrives all the same", "[runtime][unit]") {
  Pair pair;
  std::string longer(4'000'000, 'x');
  std::vector<MessageLink::Sender> done;
  pair.a->send({.type = FrameType::kData, .bytes = longer.size()}, longer.data(), &longer);
  pair.a->write(done);
  REQUIRE(pair.a->has_unsent());
  pair.a->take_back(&longer);
  longer.assign(longer.size(), 'y');
  Taken taken;
  while (taken.frames.empty()) {
    pair.a->write(done);
    pair.b->read(taken, scratch);
  }
  CHECK(taken.texts.front() == std::string(longer.size(), 'x'));
  CHECK(done.empty());
}

TEST_CASE("bytes for which there is no memory are dropped", "[runtime][unit]") {
  Pair pair;
  const std::string text(50'000, 'x');
  std::vector<MessageLink::Sender> done;
  Taken taken;
  taken.drops = true;
  pair.a->send({.type = FrameType::kData, .bytes = text.size()}, text.data());
  pair.a->send({.type = FrameType::kRead, .id = 9});
  while (taken.frames.size() < 2) {
    pair.a->write(done);
    pair.b->read(taken, scratch);
  }
  CHECK(taken.frames[1].id == 9);
}

TEST_CASE("what is no frame, or too long for its type, is an error", "[runtime][unit]") {
  for (const Frame& frame :
       {Frame{.type = static_cast<FrameType>(99)}, Frame{.type = FrameType::kEager, .bytes = 1u << 20},
        Frame{.type = FrameType::kGoodbye, .bytes = 5000},
        Frame{.type = FrameType::kAsk, .bytes = std::uint64_t{1} << 60}}) {
    CHECK_THROWS_AS(payload_of(frame), Error);
  }
  Pair pair;
  Taken taken;
  pair.a.reset();
  CHECK_THROWS_WITH(pair.b->read(taken, scratch), "its process has closed the connection");
}
