#include "runtime/collectives/hierarchical/rounds/block_exchange.hpp"

#include "runtime/collectives/hierarchical/rounds/message_block.hpp"
#include "tests/catch.hpp"
#include "tests/runtime/collectives/hierarchical/rounds/rounds_hosts.hpp"
#include "tests/runtime/collectives/hierarchical/rounds/whole_block.hpp"

using namespace runjob::runtime;
using runjob::Errc;
using runjob::Error;

namespace {

std::string block_of(const std::string& text, bool with_ages = false, std::uint32_t age_us = 0) {
  return whole_block({{.tag = 7, .bytes = std::as_bytes(std::span(text)), .age_us = age_us}}, with_ages);
}

/// Hosts with one rank each, whose leaders exchange blocks on this thread.
class Leaders {
 public:
  explicit Leaders(const std::vector<int>& hosts) : ranks_(hosts) {
    auto channels = connect_all(static_cast<int>(hosts.size()));
    for (std::size_t host = 0; host < hosts.size(); ++host) {
      RoundsRank& rank = ranks_[static_cast<int>(host)];
      links_.push_back(std::make_unique<LeaderLinks>(std::move(channels[host])));
      exchanges_.push_back(
          std::make_unique<BlockExchange>(rank.topology, rank.local.group, rank.board, *links_.back()));
    }
  }

  BlockExchange& operator[](int host) { return *exchanges_[static_cast<std::size_t>(host)]; }
  LeaderLinks& links(int host) { return *links_[static_cast<std::size_t>(host)]; }
  RoundsRank& rank(int host) { return ranks_[host]; }

  /// Hands everything that has come to the exchange of `host`.
  void receive(int host) {
    links(host).receive(
        [&](int from, const LeaderLinks::Frame& frame) { (*this)[host].receive(from, frame.round, frame.payload); },
        [](int) {});
    (*this)[host].advance();
  }

  std::string text(int host, std::uint64_t round, int of) {
    REQUIRE((*this)[host].round() == round);
    const auto bytes = (*this)[host].message(of);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

 private:
  RoundsHosts ranks_;
  std::vector<std::unique_ptr<LeaderLinks>> links_;
  std::vector<std::unique_ptr<BlockExchange>> exchanges_;
};

}  // namespace

TEST_CASE("block exchange: all hosts get all messages, in whichever order the hosts act", "[runtime][net]") {
  const auto hosts = GENERATE(std::vector<int>{0, 1}, std::vector<int>{0, 1, 2}, std::vector<int>{0, 1, 2, 3, 4});
  const int count = static_cast<int>(hosts.size());
  Leaders leaders(hosts);
  for (std::uint64_t round = 1; round <= 20; ++round) {
    const int first = static_cast<int>(round) % count;
    for (int i = 0; i < count; ++i) {
      const int host = (first + i) % count;
      leaders[host].begin({block_of(std::to_string(round) + " of " + std::to_string(host))});
      leaders.receive((host + 1) % count);  // may not have begun the round itself
    }
    // Each message moves on by one host at least.
    for (int turn = 0; turn < count; ++turn) {
      for (int host = 0; host < count; ++host) leaders.receive(host);
    }
    for (int host = 0; host < count; ++host) {
      CHECK(leaders[host].is_complete());
      CHECK(leaders.rank(host).board.completed().load() == round);
      for (int of = 0; of < count; ++of) {
        if (of != host) CHECK(leaders.text(host, round, of) == std::to_string(round) + " of " + std::to_string(of));
      }
    }
  }
}

TEST_CASE("block exchange: a message that comes before this host begins is kept", "[runtime][net]") {
  Leaders leaders({0, 1});
  leaders[1].begin({block_of("early")});
  leaders.receive(0);
  CHECK(leaders.rank(0).board.completed().load() == 0);
  leaders[0].begin({block_of("late")});
  CHECK(leaders[0].is_complete());
  CHECK(leaders.text(0, 1, 1) == "early");
}

TEST_CASE("block exchange: of two ranks, each reads the other one's message where it was received", "[runtime][net]") {
  Leaders leaders({0, 1});
  const std::string text(5000, 'x');
  const auto bytes = std::as_bytes(std::span(text));
  for (std::uint64_t round = 1; round <= 3; ++round) {
    for (const int host : {0, 1}) leaders[host].begin(encode_block({{.tag = 7, .bytes = bytes}}, false, {}));
    for (const int host : {0, 1}) {
      while (!leaders[host].is_complete()) leaders.receive(host);
      const auto received = leaders[host].message(1 - host);
      CHECK(received.data() != leaders.rank(host).board.message(round, 1 - host).data());
      CHECK(reinterpret_cast<std::uintptr_t>(received.data()) % alignof(double) == 0);
      CHECK(leaders.text(host, round, 1 - host) == text);
      CHECK(leaders.rank(host).board.tag(round, 1 - host) == 7);
    }
  }
}

TEST_CASE("block exchange: a message that is not aligned where it was received is copied to the board",
          "[runtime][net]") {
  Leaders leaders({0, 1});
  const std::string text(5000, 'x'), shifted = "x" + block_of(text);
  leaders[0].begin({block_of("a")});
  leaders[0].receive(1, 1, std::string_view(shifted).substr(1));
  REQUIRE(leaders[0].is_complete());
  CHECK(leaders[0].message(1).data() == leaders.rank(0).board.message(1, 1).data());
  CHECK(leaders.text(0, 1, 1) == text);
}

TEST_CASE("block exchange: a message's age counts from the rank that gave it", "[runtime][net]") {
  Leaders leaders({0, 1});
  const auto now = [] { return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1); };
  leaders[0].begin({block_of("a", true)});
  const std::int64_t before = now();
  leaders[1].begin({block_of("b", true, 5'000'000)});
  leaders.receive(0);
  CHECK(leaders[0].given_at(1) >= before - 5'000'000'000);
  CHECK(leaders[0].given_at(1) <= now() - 5'000'000'000);
}

TEST_CASE("block exchange: blocks that no host sends are errors", "[runtime][net]") {
  Leaders leaders({0, 1});
  const std::string block = block_of("b");
  const int which = GENERATE(0, 1, 2);
  try {
    if (which == 0) leaders[0].receive(1, 7, block);
    leaders[0].begin({block_of("a")});
    if (which == 1) leaders[0].receive(1, 1, block + block);
    if (which == 2) leaders[0].receive(1, 1, std::string_view(block).substr(1));
    FAIL("taken");
  } catch (const Error& error) {
    CHECK(error.code() == Errc::kProtocol);
  }
}

TEST_CASE("block exchange: a host that has ended its connection is named", "[runtime][net]") {
  Leaders leaders({0, 1, 2});
  leaders.links(1).close();
  leaders.receive(0);
  try {
    leaders[0].begin({block_of("a")});
    FAIL("begun");
  } catch (const Error& error) {
    CHECK(error.code() == Errc::kPeerLost);
    CHECK_THAT(std::string(error.what()), ContainsSubstring("rank 1 "));
  }
}
