#include "runtime/collectives/hierarchical/rounds/host_rounds.hpp"

#include <future>
#include <random>
#include <stdexcept>

#include "base/error.hpp"
#include "tests/catch.hpp"
#include "tests/runtime/collectives/hierarchical/rounds/rounds_hosts.hpp"
#include "tests/thrown.hpp"

using namespace runjob::runtime;
using runjob::Errc;
using runjob::Error;
using runjob::thrown;

namespace {

constexpr auto kNoDeadline = std::nullopt;
bool is_not_busy(int) {
  return false;
}
bool is_always_busy(int) {
  return true;
}

std::string message_of(int rank, std::size_t bytes) {
  return std::string(bytes, static_cast<char>('a' + rank));
}

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::future<bool> collecting(HostRounds& rounds) {
  return std::async(std::launch::async, [&rounds] { return rounds.collect(kNoDeadline, is_not_busy); });
}

/// One rank's part in a random schedule that all draw alike.
void play(RoundsHosts& hosts, int own, int rounds, unsigned seed) {
  HostRounds& self = hosts.rounds(own);
  std::mt19937 common(seed), alone(seed * 1000 + static_cast<unsigned>(own));
  for (int i = 0; i < rounds; ++i) {
    const auto draw = common();
    const int beginner = static_cast<int>(draw % static_cast<unsigned>(hosts.size()));
    const auto tag_of = [&](int rank) { return draw + static_cast<std::uint32_t>(rank); };
    const auto bytes_of = [&](int rank) {
      const std::size_t most = (draw / 64) % 5 == 0 ? self.most_bytes() : 100;
      return (draw / 1024 + static_cast<std::size_t>(rank) * 77) % (most + 1);
    };
    const bool waits = own != beginner && alone() % 2 == 0;
    while (waits && !self.is_awaited()) self.wait(kNoDeadline);
    if (alone() % 4 == 0) std::this_thread::yield();
    const std::string own_message = message_of(own, bytes_of(own));
    const bool is_input = (draw / 32) % 2 == 0;
    if (is_input) {
      self.give_input(tag_of(own), std::as_bytes(std::span(own_message)), {});
    } else {
      self.give(tag_of(own), std::as_bytes(std::span(own_message)));
    }
    const bool is_busy = (draw / 8) % 2 == 0;
    for (int tries = static_cast<int>(alone() % 3);; --tries) {
      const Rounds::Deadline deadline = tries > 0 ? std::optional(Rounds::Clock::now()) : std::nullopt;
      if (self.collect(deadline, is_busy ? is_always_busy : is_not_busy)) break;
    }
    for (int rank = 0; rank < hosts.size(); ++rank) {
      if (!self.has_given(rank) || self.tag(rank) != tag_of(rank)) throw std::runtime_error("tag");
      if (is_input && rank == own) continue;
      if (text_of(self.message(rank)) != message_of(rank, bytes_of(rank))) throw std::runtime_error("message");
    }
    if (draw % 3 != 0) continue;
    SmallExchange& small = hosts[own].local.small;  // what a collective does between rounds
    static_cast<void>(small.begin(0));
    small.give();
    for (int local = 0; local < hosts[own].topology.local_size(); ++local) static_cast<void>(small.take(local, 0));
  }
}

}  // namespace

TEST_CASE("what no other rank reads of a lone rank's message is not sent", "[runtime][unit]") {
  RoundsHosts hosts({0, 1});
  const std::string whole(30000, 'x');
  const Rounds::Part unread{1000, 28000};
  for (const int rank : {0, 1})
    hosts.rounds(rank).give_input(7, std::as_bytes(std::span(whole)), rank == 0 ? unread : Rounds::Part());
  auto other = collecting(hosts.rounds(1));
  REQUIRE(hosts.rounds(0).collect(kNoDeadline, is_not_busy));
  REQUIRE(other.get());
  CHECK(text_of(hosts.rounds(0).message(1)) == whole);
  const std::string received = text_of(hosts.rounds(1).message(0));
  CHECK(received.size() == whole.size());
  CHECK(received.substr(0, 1000) == whole.substr(0, 1000));
  CHECK(received.substr(29000) == whole.substr(29000));
  CHECK(hosts.rounds(0).traffic().bytes < 3000);
  CHECK(hosts.rounds(1).traffic().bytes > 30000);
}

TEST_CASE("the input of a lone rank is not copied into shared memory", "[runtime][unit]") {
  RoundsHosts hosts({0, 0, 1});
  const std::string input(30000, 'x');
  for (const int rank : {0, 1, 2}) hosts.rounds(rank).give_input(7, std::as_bytes(std::span(input)), {});
  CHECK(hosts[0].local.rounds.message(0).size() == input.size());
  CHECK(hosts[2].local.rounds.message(0).empty());
  auto first = collecting(hosts.rounds(0)), second = collecting(hosts.rounds(1));
  REQUIRE(hosts.rounds(2).collect(kNoDeadline, is_not_busy));
  REQUIRE((first.get() && second.get()));
  CHECK(text_of(hosts.rounds(0).message(2)) == input);
  CHECK(text_of(hosts.rounds(2).message(1)) == input);
}

TEST_CASE("host rounds: all ranks hear all messages in random schedules", "[runtime][net]") {
  const auto places = GENERATE(std::vector<int>{0, 1}, std::vector<int>{0, 0, 1, 1}, std::vector<int>{0, 1, 0, 2, 1},
                               std::vector<int>{0, 1, 2, 3, 4, 4, 4});
  const unsigned seed = GENERATE(1u, 2u, 3u);
  const std::chrono::microseconds spin(seed == 3 ? 20 : 0);
  RoundsHosts hosts(places, std::chrono::seconds(60), spin);
  CHECK(hosts.run([&](int rank) { play(hosts, rank, 200, seed); }) == no_errors(hosts.size()));
}

TEST_CASE("host rounds: leaders send messages in number of the logarithm of the hosts, others none", "[runtime][net]") {
  RoundsHosts hosts({0, 0, 1, 2, 3, 4, 5, 6, 7});
  const auto errors = hosts.run([&](int rank) {
    for (std::uint32_t i = 0; i < 50; ++i) {
      hosts.rounds(rank).give(i, {});
      hosts.rounds(rank).collect(kNoDeadline, is_not_busy);
    }
  });
  CHECK(errors == no_errors(hosts.size()));
  CHECK(hosts.rounds(1).traffic().messages == 0);
  for (int leader : {0, 2, 8}) CHECK(hosts.rounds(leader).traffic().messages == 50 * 3);
}

TEST_CASE("host rounds: one that is not over at its deadline can be collected later", "[runtime][net]") {
  RoundsHosts hosts({0, 1, 1});
  const int first = GENERATE(0, 1, 2);
  hosts.rounds(first).give(7, {});
  CHECK_FALSE(hosts.rounds(first).collect(Rounds::Clock::now(), is_not_busy));
  std::vector<std::future<bool>> others;
  for (const int rank : {0, 1, 2}) {
    if (rank != first) {
      hosts.rounds(rank).give(8, {});
      others.push_back(collecting(hosts.rounds(rank)));
    }
  }
  CHECK(hosts.rounds(first).collect(kNoDeadline, is_not_busy));
  CHECK(hosts.rounds(first).tag(first == 2 ? 0 : 2) == 8);
  for (auto& other : others) CHECK(other.get());
}

TEST_CASE("host rounds: a rank that takes part must come in time, and is named", "[runtime][net]") {
  RoundsHosts hosts({0, 1, 1, 2}, std::chrono::milliseconds(700));
  const int missing = GENERATE(0, 1, 2, 3);
  const auto errors = hosts.run([&](int rank) {
    if (rank == missing) return;
    hosts.rounds(rank).give(1, {});
    const auto error = thrown([&] { hosts.rounds(rank).collect(kNoDeadline, is_always_busy); });
    if (error.first != Errc::kTimeout || error.second.find("for rank " + std::to_string(missing)) == std::string::npos)
      throw std::runtime_error(error.second);
  });
  CHECK(errors == no_errors(4));
}

TEST_CASE("host rounds: a rank that is not busy may take its time", "[runtime][net]") {
  RoundsHosts hosts({0, 1, 1}, std::chrono::milliseconds(5));
  const int waiting = GENERATE(1, 2);
  hosts.rounds(waiting).give(1, {});
  CHECK_FALSE(hosts.rounds(waiting).collect(Rounds::Clock::now() + std::chrono::milliseconds(20), is_not_busy));
}

TEST_CASE("host rounds: who has given is known everywhere, whoever holds up the messages", "[runtime][net]") {
  RoundsHosts hosts({0, 0, 1, 1, 2, 3});
  const int missing = GENERATE(0, 1, 2, 3, 4);
  const auto errors = hosts.run([&](int rank) {
    if (rank == missing) return;
    hosts.rounds(rank).give(1, {});
    const auto knows = [&] {
      for (int other = 0; other < hosts.size(); ++other) {
        if (hosts.rounds(rank).has_given(other) != (other != missing)) return false;
      }
      return true;
    };
    while (!knows()) {
      if (hosts.rounds(rank).collect(Rounds::Clock::now() + std::chrono::milliseconds(20), is_not_busy))
        throw std::runtime_error("over without all");
    }
  });
  CHECK(errors == no_errors(hosts.size()));
}

TEST_CASE("host rounds: a rank that waits for a reason to begin a round is woken by each", "[runtime][net]") {
  RoundsHosts hosts({0, 0, 1, 1});
  const int sleeper = GENERATE(0, 1);
  auto waiting = std::async(std::launch::async, [&] { hosts.rounds(sleeper).wait(kNoDeadline); });
  SECTION("messages of another host") {
    for (const int rank : {2, 3}) hosts.rounds(rank).give(1, {});
    auto leader = collecting(hosts.rounds(2));
    waiting.get();
    CHECK(hosts.rounds(sleeper).is_awaited());
    CHECK(hosts.rounds(1 - sleeper).is_awaited());
    for (const int rank : {0, 1}) hosts.rounds(rank).give(1, {});
    auto other = collecting(hosts.rounds(1));
    CHECK(hosts.rounds(0).collect(kNoDeadline, is_not_busy));
    CHECK((leader.get() && other.get()));
  }
  SECTION("its neighbour's message") {
    hosts.rounds(1 - sleeper).give(1, {});
    waiting.get();
  }
  SECTION("a nudge") {
    hosts.rounds(sleeper).nudge();
    waiting.get();
    CHECK_FALSE(hosts.rounds(sleeper).is_awaited());
  }
  SECTION("another host's leader that leaves") {
    hosts.rounds(2).leave();
    waiting.get();
    CHECK(hosts.rounds(sleeper).is_awaited());
  }
}

TEST_CASE("host rounds: a busy rank far away is woken although the messages come to it late", "[runtime][net]") {
  RoundsHosts hosts({0, 1, 2, 3, 4, 5, 6, 7});
  std::vector<std::future<void>> woken;
  for (int rank = 1; rank < 8; ++rank)
    woken.push_back(std::async(std::launch::async, [&, rank] {
      while (!hosts.rounds(rank).is_awaited()) hosts.rounds(rank).wait(kNoDeadline);
    }));
  hosts.rounds(0).give(1, {});
  CHECK_FALSE(hosts.rounds(0).collect(Rounds::Clock::now(), is_always_busy));
  for (auto& each : woken) each.get();  // although none of them passes anything on
}

TEST_CASE("host rounds: a rank that leaves ends its own waits and those for what it has not given", "[runtime][net]") {
  RoundsHosts hosts({0, 0, 1, 1});
  const int leaver = GENERATE(0, 1, 2, 3);
  hosts.rounds(leaver).give(1, {});
  auto own = std::async(std::launch::async,
                        [&] { return thrown([&] { hosts.rounds(leaver).collect(kNoDeadline, is_not_busy); }); });
  hosts.rounds(leaver).leave();
  CHECK(own.get() == std::pair(Errc::kAborted, std::string("this rank leaves the exchange")));
  const auto errors = hosts.run([&](int rank) {
    if (rank == leaver) return;
    const auto error = thrown([&] {
      for (std::uint32_t round = 1; round <= 2; ++round) {  // a neighbour's message of the first counts
        hosts.rounds(rank).give(round, {});
        hosts.rounds(rank).collect(kNoDeadline, is_not_busy);
      }
    });
    if (error != std::pair(Errc::kPeerLost, "rank " + std::to_string(leaver) + " has left"))
      throw std::runtime_error(error.second);
  });
  CHECK(errors == no_errors(4));
}

TEST_CASE("host rounds: a leader that takes no part can announce the ranks of its host that leave", "[runtime][net]") {
  RoundsHosts hosts({0, 0, 1, 1});
  for (const int rank : {0, 1}) hosts.rounds(rank).give(1, {});
  auto ended = std::async(std::launch::async,
                          [&] { return thrown([&] { hosts.rounds(0).collect(kNoDeadline, is_not_busy); }); });
  CHECK(hosts.rounds(2).announce_departures());
  CHECK_FALSE(hosts.rounds(3).announce_departures());
  hosts.rounds(3).leave();
  CHECK_FALSE(hosts.rounds(2).announce_departures());  // all others have left
  CHECK(ended.get() == std::pair(Errc::kPeerLost, std::string("rank 3 has left")));
}

TEST_CASE("host rounds: a round that all have given is heard by all although one leaves then", "[runtime][net]") {
  RoundsHosts hosts({0, 1, 1, 2});
  const int leaver = GENERATE(0, 1, 2, 3);
  const auto errors = hosts.run([&](int rank) {
    hosts.rounds(rank).give(1, {});
    if (!hosts.rounds(rank).collect(kNoDeadline, is_not_busy)) throw std::runtime_error("no end");
    if (rank == leaver) hosts.rounds(rank).leave();
  });
  CHECK(errors == no_errors(4));
}

TEST_CASE("host rounds: a leader whose process ends is named by all hosts", "[runtime][net]") {
  RoundsHosts hosts({0, 0, 1, 2});
  hosts[2].exchange->close();  // as the kernel does
  const auto errors = hosts.run([&](int rank) {
    if (rank == 1 || rank == 2) return;  // rank 1 hears it from the engine
    hosts.rounds(rank).give(1, {});
    if (rank == 0) hosts.rounds(1).give(1, {});
    const auto error = thrown([&] { hosts.rounds(rank).collect(kNoDeadline, is_not_busy); });
    if (error.first != Errc::kConnect || error.second.find("the connection to rank 2") == std::string::npos)
      throw std::runtime_error(error.second);
  });
  CHECK(errors == no_errors(4));
}

TEST_CASE("host rounds: the end of the group and of the connections ends every wait", "[runtime][net]") {
  RoundsHosts hosts({0, 0, 1});
  std::vector<std::future<std::string>> ended;
  for (const int rank : {0, 1}) {
    hosts.rounds(rank).give(1, {});
    ended.push_back(std::async(std::launch::async, [&hosts, rank] {
      return thrown([&] { hosts.rounds(rank).collect(kNoDeadline, is_not_busy); }).second;
    }));
  }
  hosts[0].local.group.end();
  hosts[0].exchange->close();
  for (auto& each : ended) CHECK_FALSE(each.get().empty());
}

TEST_CASE("a limit for data only lowers what the messages have room for", "[runtime][unit]") {
  RoundsHosts hosts({0, 0, 1, 1});
  RoundsRank& rank = hosts[1];
  const std::size_t room = FarBoard::most_data_bytes(4, Kind::kAlltoall);
  using Pair = std::pair<std::size_t, std::size_t>;
  for (const auto& [limit, expected] : {Pair{2 * room, room}, Pair{room / 2, room / 2}, Pair{0, 0}}) {
    const HostRounds::Options options{std::chrono::seconds(1), limit};
    const HostRounds rounds(rank.topology, rank.local.group, rank.local.rounds, rank.board, nullptr, options);
    CHECK(rounds.most_data_bytes(Kind::kAlltoall) == expected);
    CHECK(rounds.most_bytes() == FarBoard::most_bytes(4));
  }
}
