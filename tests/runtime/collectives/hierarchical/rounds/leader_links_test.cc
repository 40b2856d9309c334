#include "runtime/collectives/hierarchical/rounds/leader_links.hpp"

#include <poll.h>

#include "tests/catch.hpp"
#include "tests/runtime/collectives/hierarchical/rounds/rounds_hosts.hpp"

using namespace runjob::runtime;
using Type = LeaderLinks::Type;

namespace {

struct Heard {
  std::vector<std::string> frames;
  std::vector<int> ended;

  void from(LeaderLinks& links) {
    links.receive(
        [this](int host, const LeaderLinks::Frame& frame) {
          frames.push_back(std::to_string(host) + ":" + std::to_string(static_cast<int>(frame.type)) + ":" +
                           std::to_string(frame.round) + ":" + std::string(frame.payload));
        },
        [this](int host) { ended.push_back(host); });
  }
  /// Waits for something.
  void next_from(LeaderLinks& links) {
    pollfd descriptor{links.descriptor(), POLLIN, 0};
    REQUIRE(::poll(&descriptor, 1, 60000) == 1);
    from(links);
  }
};

bool is_ready(const LeaderLinks& links) {
  pollfd descriptor{links.descriptor(), POLLIN, 0};
  return ::poll(&descriptor, 1, 0) == 1;
}

}  // namespace

TEST_CASE("links: frames come with their host, in order, and are counted", "[runtime][net]") {
  auto channels = connect_all(3);
  LeaderLinks zero(std::move(channels[0])), one(std::move(channels[1])), two(std::move(channels[2]));
  CHECK_FALSE(is_ready(zero));
  one.send(0, {Type::kBlocks, 5, "abc"});
  one.send(0, {Type::kBegun, 6, ""});
  two.send_to_all({Type::kAsk, 7, "x"});
  CHECK(is_ready(zero));
  Heard heard;
  heard.from(zero);
  CHECK_THAT(heard.frames,
             Catch::Matchers::UnorderedEquals(std::vector<std::string>{"1:0:5:abc", "1:1:6:", "2:2:7:x"}));
  CHECK_FALSE(is_ready(zero));
  CHECK(two.messages_sent() == 2);
  CHECK(two.bytes_sent() == 2 * (116 + 1));
}

TEST_CASE("links: a message that the socket does not take at once arrives whole", "[runtime][net]") {
  auto channels = connect_all(2);
  LeaderLinks zero(std::move(channels[0])), one(std::move(channels[1]));
  const std::string longest(5u << 20, 'x');
  zero.send(1, {Type::kBlocks, 1, longest});
  zero.send(1, {Type::kBegun, 2, ""});
  Heard heard, unheard;
  while (heard.frames.size() < 2) {
    heard.next_from(one);
    unheard.from(zero);  // sends the rest
  }
  CHECK(heard.frames[0] == "0:0:1:" + longest);
  CHECK(heard.frames[1] == "0:1:2:");
}

TEST_CASE("links: an end is told after what came before it, once", "[runtime][net]") {
  auto channels = connect_all(2);
  LeaderLinks zero(std::move(channels[0])), one(std::move(channels[1]));
  one.send(0, {Type::kLeft, 1, "x"});
  one.close();
  Heard heard;
  heard.next_from(zero);
  CHECK(heard.frames == std::vector<std::string>{"1:4:1:x"});
  while (heard.ended.empty()) heard.next_from(zero);
  CHECK(heard.ended == std::vector<int>{1});
  CHECK_FALSE(zero.is_open(1));
  CHECK_FALSE(is_ready(zero));
  zero.send(1, {Type::kBegun, 2, ""});  // to nobody
  CHECK(zero.messages_sent() == 0);
}

TEST_CASE("links: noise ends a connection", "[runtime][net]") {
  auto channels = connect_all(2);
  ControlChannel stranger = std::move(channels[1][0]);
  LeaderLinks zero(std::move(channels[0]));
  stranger.send("short");
  Heard heard;
  heard.next_from(zero);
  CHECK(heard.frames.empty());
  CHECK(heard.ended == std::vector<int>{1});
}
