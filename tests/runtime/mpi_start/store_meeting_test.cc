#include "runtime/mpi_start/store_meeting.hpp"

#include "base/error.hpp"
#include "runtime/mpi_start/pmi_store.hpp"
#include "tests/catch.hpp"
#include "tests/runtime/mpi_start/pmi_server.hpp"
#include "tests/thrown.hpp"

using namespace runjob;
using namespace runjob::runtime;
using namespace std::chrono_literals;
using rendezvous::JoinReply;

TEST_CASE("places follow from who is on whose host", "[mpi_start][unit]") {
  // a: ranks 0, 2, 4; b: 1, 3; c: 5
  const std::vector<std::string> identities = {"ia", "ib", "ia", "ib", "ia", "ic"},
                                 names = {"a", "b", "a", "b", "a", "a"};
  const auto numbers = [&](int rank) {
    const JoinReply place = place_among(rank, identities, names);
    CHECK(place.rank == rank);
    CHECK(place.size == 6);
    CHECK(place.hosts == std::vector<int>{0, 1, 0, 1, 0, 2});
    CHECK(place.hostnames == std::vector<std::string>{"a", "b", "a"});
    return std::vector<int>{place.local_rank, place.local_size, place.cross_rank, place.cross_size};
  };
  CHECK(numbers(0) == std::vector<int>{0, 3, 0, 3});
  CHECK(numbers(1) == std::vector<int>{0, 2, 1, 3});
  CHECK(numbers(2) == std::vector<int>{1, 3, 0, 2});
  CHECK(numbers(3) == std::vector<int>{1, 2, 1, 2});
  CHECK(numbers(4) == std::vector<int>{2, 3, 0, 1});
  CHECK(numbers(5) == std::vector<int>{0, 1, 2, 3});
  CHECK(place_among(5, identities, names).hostname == "a");
}

TEST_CASE("ranks join and gather what each has to say, again and again", "[mpi_start][net]") {
  PmiServer server(3);
  std::vector<std::vector<std::string>> gathered(3);
  std::vector<JoinReply> places(3);
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < 3; ++rank) {
    ranks.emplace_back([&, rank] {
      PmiStore store(server.launcher(rank));
      for (int round = 0; round < 2; ++round) {
        StoreMeeting meeting(server.launcher(rank), store, round);
        places[static_cast<std::size_t>(rank)] = meeting.join(30s);
        gathered[static_cast<std::size_t>(rank)] =
            meeting.gather("x" + std::to_string(round), "of " + std::to_string(rank), 30s);
      }
    });
  }
  for (std::thread& rank : ranks) rank.join();
  for (const auto& blobs : gathered) CHECK(blobs == std::vector<std::string>{"of 0", "of 1", "of 2"});
  CHECK(places[2].local_rank == 2);
  CHECK(places[2].local_size == 3);
  CHECK(places[2].start_timeout_seconds == 30);
}

TEST_CASE("who waits for a rank that does not come gets an error, and cannot go on", "[mpi_start][net]") {
  PmiServer server(2);
  PmiStore store(server.launcher(0));
  StoreMeeting meeting(server.launcher(0), store, 0);
  const auto [code, text] = thrown([&] { meeting.join(20ms); });
  CHECK(code == Errc::kTimeout);
  CHECK(text == "init(): not all 2 ranks have come in 0.02 s; a test has started 2 ranks, and each has to call init()");
  CHECK(thrown([&] { meeting.join(20ms); }).first == Errc::kAborted);
}
