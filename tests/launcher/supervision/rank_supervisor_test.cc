#include "launcher/supervision/rank_supervisor.hpp"

#include <csignal>
#include <optional>
#include <vector>

#include "launcher/supervision/outcome_report.hpp"
#include "tests/catch.hpp"
#include "tests/launcher/manual_clock.hpp"

using namespace runjob;
using namespace std::chrono_literals;

namespace {

using Cause = Verdict::Cause;

Allocation two_hosts() {
  Allocation allocation;
  allocation.hosts = {{"s1", 2, "", {}, "", {}}, {"s2", 1, "", {}, "", {}}};
  allocation.placements = {{0, 3, 0, 2, 0, 2, 0}, {1, 3, 1, 2, 0, 1, 0}, {2, 3, 0, 1, 1, 2, 1}};
  return allocation;
}

/// Three supervised ranks, and the callbacks of the supervisor.
struct Supervised {
  explicit Supervised(bool continue_on_failure = false, rendezvous::Service::Placement placement = {})
      : ranks(allocation, {"train", 30s, continue_on_failure, std::move(placement)}, clock.make_alarm(),
              [this](const Verdict& verdict) { causes.push_back(verdict.cause()); }) {}

  void start_all() {
    for (int rank = 0; rank < 3; ++rank) ranks.started(rank, {100 + rank, {}, {}});
  }

  /// Sends a request; its answer arrives in `answers`, at the request's index.
  std::size_t ask(int rank, const std::string& method, const std::string& target, const std::string& body = "") {
    answers.emplace_back();
    const std::size_t index = answers.size() - 1;
    ranks.request({method, target, body, rank},
                  [this, index](rendezvous::Response response) { answers[index] = std::move(response); });
    return index;
  }
  void announce_failure(int rank, bool own, const std::string& reason) {
    const std::size_t index = ask(rank, "POST", "/v1/failing", rendezvous::to_json(rendezvous::Failing{own, reason}));
    REQUIRE(answers[index].value().status == 200);
  }
  std::string message() const {
    return outcome_message(ranks.verdict().outcome(), [](int) { return std::vector<std::string>(); });
  }

  const Allocation allocation = two_hosts();
  ManualClock clock;
  std::vector<Cause> causes;
  std::vector<std::optional<rendezvous::Response>> answers;
  RankSupervisor ranks;
};

Exited with_status(int status) {
  return {status << 8, false, false, 0, 10, 0.1};
}

}  // namespace

TEST_CASE("ranks that all end well are no reason to end the job", "[unit]") {
  Supervised job;
  job.start_all();
  for (int rank = 0; rank < 3; ++rank) CHECK(job.ranks.joined(rank) == (rank == 0));
  for (int rank = 0; rank < 3; ++rank) job.ranks.exited(rank, with_status(0));
  job.ranks.end_if_caused();
  job.clock.advance(1h);
  CHECK(job.causes.empty());
  CHECK(job.ranks.verdict().outcome().exit_status() == 0);
  CHECK(job.clock.pending() == 0);
}

TEST_CASE("the ranks are told to end once, after the batch of events", "[unit]") {
  Supervised job;
  job.start_all();
  job.ranks.exited(1, with_status(3));
  CHECK(job.causes.empty());
  job.ranks.end_if_caused();
  CHECK(job.causes == std::vector<Cause>{Cause::kRankFailed});
  job.ranks.exited(0, with_status(9));
  job.ranks.end_if_caused();
  job.clock.advance(1h);
  CHECK(job.causes.size() == 1);
  CHECK(job.ranks.verdict().outcome().exit_status() == 3);
}

TEST_CASE("a rank that could not be started ends the job, and waiting ranks get no error of their own", "[unit]") {
  Supervised job;
  job.ranks.started(0, {100, {}, {}});
  const std::size_t barrier = job.ask(0, "POST", "/v1/barrier/b?wait=20");
  job.ranks.not_started(1, {StartFailed::Step::kExec, ENOENT, ""});
  job.ranks.end_if_caused();
  CHECK(job.causes == std::vector<Cause>{Cause::kNotStarted});
  CHECK_FALSE(job.answers[barrier]);
}

TEST_CASE("a lost host ends the job", "[unit]") {
  Supervised job;
  job.start_all();
  job.ranks.host_lost(1, "it closed the connection");
  job.ranks.end_if_caused();
  CHECK(job.causes == std::vector<Cause>{Cause::kHostLost});
  CHECK(job.message() == "lost the agent on s2: it closed the connection");
}

TEST_CASE("ranks that do not call init() within the start timeout are named", "[unit]") {
  Supervised job;
  job.start_all();
  job.clock.advance(1min);  // nothing is late before the first call
  CHECK(job.clock.pending() == 0);
  CHECK(job.ranks.joined(1));
  job.clock.advance(10s);
  CHECK_FALSE(job.ranks.joined(0));
  job.clock.advance(20s - 1ms);
  CHECK(job.causes.empty());
  job.clock.advance(1ms);
  CHECK(job.causes == std::vector<Cause>{Cause::kStartTimeout});
  CHECK(job.message() ==
        "rank 2 on s2 has not called init() for 90 s (pid 102); for a longer time give --start-timeout, which is 30 s");
}

TEST_CASE("a rank that ends without init() after another one has called it is named at once", "[unit]") {
  Supervised job;
  job.start_all();
  job.ranks.joined(0);
  job.ranks.exited(2, with_status(0));
  CHECK(job.causes == std::vector<Cause>{Cause::kStartTimeout});
  CHECK(job.message() == "rank 2 on s2 ended without calling init() (exited with status 0)");
}

TEST_CASE("a rank that has ended before the first one calls init() is named at that call", "[unit]") {
  Supervised job;
  job.start_all();
  job.ranks.exited(2, with_status(0));
  CHECK(job.causes.empty());
  CHECK(job.ranks.joined(0));
  CHECK(job.causes == std::vector<Cause>{Cause::kStartTimeout});
  CHECK(job.message() == "rank 2 on s2 ended without calling init() (exited with status 0)");
}

TEST_CASE("the start timeout passes without effect when all ranks have joined", "[unit]") {
  Supervised job;
  job.start_all();
  for (int rank = 0; rank < 3; ++rank) job.ranks.joined(rank);
  job.clock.advance(1h);
  CHECK(job.causes.empty());
  CHECK(job.clock.pending() == 0);
}

TEST_CASE("a job that continues on failures does not end for a failed or a late rank", "[unit]") {
  Supervised job(/*continue_on_failure=*/true);
  job.start_all();
  job.ranks.joined(0);
  job.ranks.exited(1, with_status(3));
  job.ranks.end_if_caused();
  job.clock.advance(1h);
  CHECK(job.causes.empty());
  CHECK(job.ranks.verdict().outcome().exit_status() == 3);
  job.ranks.host_lost(1, "it closed the connection");
  job.ranks.end_if_caused();
  CHECK(job.causes == std::vector<Cause>{Cause::kRankFailed});
}

TEST_CASE("a rank that announces its failure gets some time to end with its own status", "[unit]") {
  Supervised job;
  job.start_all();
  job.announce_failure(2, true, "ValueError: two\nlines");
  job.announce_failure(0, false, "rank 2 has left");
  job.ranks.exited(0, with_status(1));
  job.ranks.end_if_caused();
  job.clock.advance(RankSupervisor::kCulpritPatience - 1ms);
  CHECK(job.causes.empty());

  SECTION("it ends in time") {
    job.ranks.exited(2, with_status(7));
    job.ranks.end_if_caused();
    CHECK(job.causes == std::vector<Cause>{Cause::kRankFailed});
    CHECK(job.ranks.verdict().outcome().exit_status() == 7);
  }
  SECTION("it does not end") {
    job.clock.advance(1ms);
    CHECK(job.causes == std::vector<Cause>{Cause::kRankFailed});
    CHECK(job.ranks.verdict().outcome().exit_status() == 1);
    CHECK_THAT(job.message(), ContainsSubstring("rank 2 on s2 (pid 102) failed: ValueError: two\\nlines"));
  }
  job.clock.advance(1h);
  CHECK(job.causes.size() == 1);
}

TEST_CASE("the culprit's time begins with the first failure and not again with each other one", "[unit]") {
  Supervised job;
  job.start_all();
  job.announce_failure(2, true, "first");
  job.clock.advance(3s);
  job.announce_failure(0, false, "rank 2 has left");
  job.clock.advance(1s);
  CHECK(job.causes == std::vector<Cause>{Cause::kRankFailed});
}

TEST_CASE("when the owner ends the ranks, only the rendezvous is watched", "[unit]") {
  Supervised job;
  job.start_all();
  job.ranks.joined(0);
  job.announce_failure(2, true, "first");
  const std::size_t value = job.ask(0, "GET", "/v1/kv/s/k?wait=60");
  job.ranks.verdict().interrupted(SIGTERM);
  job.ranks.ranks_are_ending();
  CHECK_FALSE(job.ranks.joined(1));
  job.ranks.exited(1, with_status(1));
  job.ranks.end_if_caused();
  job.clock.advance(59s);
  CHECK_FALSE(job.answers[value]);
  job.clock.advance(1s);
  CHECK(job.answers[value].value().status == 404);
  CHECK(job.causes.empty());
  CHECK(job.ranks.verdict().outcome().exit_status() == 128 + SIGTERM);
}

TEST_CASE("the earliest of all times is watched first, and a wait that ends in time is answered", "[unit]") {
  Supervised job;
  job.start_all();
  for (int rank = 0; rank < 3; ++rank) job.ranks.joined(rank);
  const std::size_t late = job.ask(0, "GET", "/v1/kv/s/late?wait=5");
  const std::size_t early = job.ask(1, "GET", "/v1/kv/s/early?wait=2");
  const std::size_t found = job.ask(2, "GET", "/v1/kv/s/found?wait=2");
  job.ask(0, "PUT", "/v1/kv/s/found", "value");
  CHECK(job.answers[found].value().body == rendezvous::Body("value"));
  job.clock.advance(2s);
  CHECK(job.answers[early].value().status == 404);
  CHECK_FALSE(job.answers[late]);
  job.clock.advance(3s);
  CHECK(job.answers[late].value().status == 404);
  job.clock.advance(1h);
  CHECK(job.clock.pending() == 0);
}

TEST_CASE("joins that arrive as requests begin the start timeout, those of strangers do not", "[unit]") {
  Supervised job(false, [](int rank) { return "place of " + std::to_string(rank); });
  job.start_all();
  job.ask(7, "POST", "/v1/join", R"({"rank": 7, "pid": 1})");
  CHECK(job.clock.pending() == 0);
  const std::size_t join = job.ask(1, "POST", "/v1/join", R"({"rank": 1, "pid": 101})");
  CHECK(job.answers[join].value().body == rendezvous::Body("place of 1"));
  job.clock.advance(30s);
  CHECK(job.causes == std::vector<Cause>{Cause::kStartTimeout});
  CHECK_THAT(job.message(), ContainsSubstring("rank 0 on s1 has not called init()"));
}
