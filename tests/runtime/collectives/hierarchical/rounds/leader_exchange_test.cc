#include "runtime/collectives/hierarchical/rounds/leader_exchange.hpp"

#include "tests/catch.hpp"
#include "tests/runtime/collectives/hierarchical/rounds/rounds_hosts.hpp"
#include "tests/runtime/collectives/hierarchical/rounds/whole_block.hpp"

using namespace runjob::runtime;
using runjob::Errc;
using runjob::Error;

namespace {

constexpr auto kForEver = LeaderExchange::Clock::time_point::max();

std::string block_of(std::uint32_t tag, const std::string& text) {
  return whole_block({{tag, std::as_bytes(std::span(text))}});
}

void finish(LeaderExchange& exchange) {
  const LeaderExchange::Attention attention(exchange);
  while (!exchange.advance()) exchange.wait(kForEver);
}

std::string text(const RoundsRank& rank, std::uint64_t round, int of) {
  const auto bytes = rank.topology.size() == 2 ? rank.exchange->message(of) : rank.board.message(round, of);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

TEST_CASE("leaders hear the blocks of all hosts, round after round", "[runtime][net]") {
  const auto hosts = GENERATE(std::vector<int>{0, 1}, std::vector<int>{0, 1, 2}, std::vector<int>{0, 1, 2, 3, 4, 5});
  const std::chrono::microseconds spin(GENERATE(0, 20));
  RoundsHosts ranks(hosts, std::chrono::seconds(60), spin);
  const auto errors = ranks.run([&](int own) {
    LeaderExchange& exchange = *ranks[own].exchange;
    for (std::uint32_t round = 1; round <= 300; ++round) {
      const auto text_of = [&](int rank) {
        return std::string((round * 37 + static_cast<std::uint32_t>(rank) * 11) % 200, static_cast<char>('a' + rank));
      };
      exchange.begin({block_of(round, text_of(own))});
      finish(exchange);
      for (int rank = 0; rank < ranks.size(); ++rank) {
        if (rank == own) continue;
        if (ranks[own].board.tag(round, rank) != round) throw std::runtime_error("tag");
        if (text(ranks[own], round, rank) != text_of(rank)) throw std::runtime_error("message");
      }
    }
  });
  CHECK(errors == no_errors(ranks.size()));
  int steps = 0;
  while ((1u << steps) < hosts.size()) ++steps;
  CHECK(ranks[0].exchange->traffic().messages == 300u * static_cast<unsigned>(steps));
}

TEST_CASE("a leader that does not look hears of a round through its thread", "[runtime][net]") {
  RoundsHosts ranks({0, 1, 2});
  ranks[2].exchange->begin({block_of(1, "x")});
  const auto wait_for = [&](int rank) {
    ranks[rank].local.group.wait_for_round([&] { return ranks[rank].board.begun().load() == 1; }, kForEver);
  };
  wait_for(1);  // the first on the blocks' way
  CHECK(ranks[0].board.begun().load() == 0);
  ranks[2].exchange->announce_begun();
  wait_for(0);
}

TEST_CASE("a connection that ends is an error that names the rank, unless it has left", "[runtime][net]") {
  RoundsHosts ranks({0, 0, 1, 1});
  const bool leaves = GENERATE(false, true);
  if (leaves) ranks[2].exchange->announce_left(2, 0);
  ranks[2].exchange->close();
  try {
    ranks[0].exchange->begin({whole_block({{}, {}})});  // may know already
    finish(*ranks[0].exchange);
    FAIL("heard all");
  } catch (const Error& error) {
    CHECK(error.code() == (leaves ? Errc::kPeerLost : Errc::kConnect));
    CHECK_THAT(std::string(error.what()), ContainsSubstring(leaves ? "rank 2 has left" : "the connection to rank 2"));
  }
  CHECK(ranks[0].board.left_after(2).load() == (leaves ? 1u : 0u));
}

TEST_CASE("that a rank has left is announced once", "[runtime][net]") {
  RoundsHosts ranks({0, 0, 1});
  LeaderExchange& exchange = *ranks[0].exchange;
  exchange.announce_left(1, 0);
  CHECK(exchange.traffic().messages == 1);
  exchange.announce_left(1, 0);
  CHECK(exchange.traffic().messages == 1);
  exchange.announce_left(0, 0);
  CHECK(exchange.traffic().messages == 2);
}

TEST_CASE("a round that cannot begin any more does not count as complete", "[runtime][net]") {
  RoundsHosts ranks({0, 1});
  const auto errors = ranks.run([&](int own) {
    ranks[own].exchange->begin({block_of(1, "x")});
    finish(*ranks[own].exchange);
  });
  REQUIRE(errors == no_errors(2));
  ranks[1].exchange->close();
  LeaderExchange& exchange = *ranks[0].exchange;
  try {
    exchange.begin({block_of(1, "y")});  // may know already
    finish(exchange);
  } catch (const Error&) {
  }
  const std::uint64_t begun = exchange.round();
  for (int attempt = 0; attempt < 2; ++attempt) CHECK_THROWS_AS(exchange.begin({block_of(1, "y")}), Error);
  CHECK(exchange.round() == begun);
}

TEST_CASE("what a host says that makes no sense is an error", "[runtime][net]") {
  RoundsHosts ranks({0, 1});
  ranks[0].exchange->begin({block_of(1, "x")});
  std::string block = block_of(1, "y");
  const int what = GENERATE(0, 1, 2);
  if (what == 0) block += "more";
  if (what == 1) block = block.substr(0, block.size() - 1);
  if (what == 2) block = block_of(1, std::string(FarBoard::most_bytes(2) + 1, 'z'));
  ranks[1].exchange->begin({block});
  try {
    finish(*ranks[0].exchange);
    FAIL("believed");
  } catch (const Error& error) {
    CHECK(error.code() == Errc::kProtocol);
  }
}
