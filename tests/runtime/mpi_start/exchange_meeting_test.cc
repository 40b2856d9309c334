#include "runtime/mpi_start/exchange_meeting.hpp"

#include "base/error.hpp"
#include "runtime/mpi_start/store_meeting.hpp"
#include "tests/catch.hpp"
#include "tests/thrown.hpp"

using namespace runjob;
using namespace runjob::runtime;
using namespace std::chrono_literals;

TEST_CASE("ranks that have an exchange join and gather", "[mpi_start][unit]") {
  const std::string other = "0 " + own_host_text("b");
  ExchangeMeeting meeting(1, 2, "a", [&](const std::string& own) {
    return std::vector<std::string>{own == "1 " + own_host_text("a") ? other : "0 theirs", own};
  });
  const rendezvous::JoinReply place = meeting.join(std::nullopt);
  CHECK(place.rank == 1);
  CHECK(place.size == 2);
  CHECK(place.local_rank == 1);  // both are in this network namespace
  CHECK(place.hostnames == std::vector<std::string>{"b"});
  CHECK(meeting.gather("x", "mine", 1s) == std::vector<std::string>{"theirs", "mine"});
}

TEST_CASE("two processes of one rank, and texts in another order, are errors", "[mpi_start][unit]") {
  ExchangeMeeting same(0, 2, "a", [](const std::string& own) { return std::vector<std::string>{own, own}; });
  const auto [code, text] = thrown([&] { same.join(std::nullopt); });
  CHECK(code == Errc::kProtocol);
  CHECK(text.find("each process needs a rank of its own") != std::string::npos);
  ExchangeMeeting turned(0, 2, "a", [](const std::string& own) { return std::vector<std::string>{"1 x", own}; });
  CHECK(thrown([&] { turned.gather("x", "mine", 1s); }).first == Errc::kProtocol);
}

TEST_CASE("an exchange with too few answers, and a rank that cannot be, are errors", "[mpi_start][unit]") {
  ExchangeMeeting meeting(0, 2, "a", [](const std::string& own) { return std::vector<std::string>{own}; });
  const auto [code, text] = thrown([&] { meeting.join(std::nullopt); });
  CHECK(code == Errc::kProtocol);
  CHECK(text.find("the exchange gave 1 answers among 2 ranks") != std::string::npos);
  CHECK(thrown([] { ExchangeMeeting(2, 2, "a", {}); }).second.find("rank 2 of 2") != std::string::npos);
}
