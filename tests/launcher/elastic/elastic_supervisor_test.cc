#include "launcher/elastic/elastic_supervisor.hpp"

#include <sys/wait.h>

#include "hostfile/parse_hosts.hpp"
#include "tests/catch.hpp"
#include "tests/launcher/manual_clock.hpp"

using namespace runjob;
using namespace std::chrono_literals;

namespace {

/// An elastic job on hosts that nobody has, with its answers recorded.
struct ElasticJob {
  explicit ElasticJob(const std::string& hosts, int min_ranks)
      : allocation(allocate(parse_host_list(hosts), std::nullopt)) {
    ElasticSettings settings;
    settings.min_ranks = min_ranks;
    settings.max_ranks = static_cast<int>(allocation.placements.size());
    ElasticSupervisor::Hooks hooks;
    hooks.start = [this](const Membership::Start& start) { starts.push_back(start); };
    hooks.notify = [this](const rendezvous::Notice& notice) { notices.push_back(notice); };
    hooks.end = [](int) {};
    hooks.obstacle = [](const Host&) { return ""; };
    hooks.add_host = [](const Host&) {};
    hooks.leave = [](int) {};
    hooks.formed = [this](const Membership::Generation& formed) { generations.push_back(formed.number); };
    job = std::make_unique<ElasticSupervisor>(
        allocation, settings, RankSupervisor::Options{"train", 30s, false, {}}, [this] { return clock.make_alarm(); },
        [this](const Verdict& verdict) { ended_with = verdict.outcome().exit_status(); }, std::move(hooks));
    for (const Placement& each : allocation.placements) {
      job->started(each.rank, Started{100 + each.rank, {}, {}});
      job->joined(each.rank);
      job->entered(each.rank);
    }
  }

  void ready(int process, std::int64_t commit) {
    const rendezvous::JoinRequest join{process, 1, rendezvous::JoinRequest::Ready{commit, "", commit - 1}};
    request(process, "/v1/join", to_json(join));
  }
  void request(int process, const std::string& target, const std::string& body) {
    answers[process].reset();
    job->request({"POST", target, body, process},
                 [this, process](rendezvous::Response response) { answers[process] = std::move(response); });
  }
  void kill(int process) { job->exited(process, Exited{SIGKILL, false, false, 0, 0}); }
  void end_well(int process) { job->exited(process, Exited{0, false, false, 0, 0}); }
  rendezvous::JoinReply reply(int process) const {
    return rendezvous::join_reply_from_json(answers.at(process).value().body);
  }

  Allocation allocation;
  ManualClock clock;
  std::vector<Membership::Start> starts;
  std::vector<rendezvous::Notice> notices;
  std::vector<int> generations;
  std::map<int, std::optional<rendezvous::Response>> answers;
  std::optional<int> ended_with;
  std::unique_ptr<ElasticSupervisor> job;
};

}  // namespace

TEST_CASE("the survivors of a loss get their new places", "[unit]") {
  ElasticJob elastic("s1:2,s2:1", 1);
  elastic.kill(0);
  CHECK(elastic.notices.size() == 1);
  CHECK(elastic.starts.size() == 1);
  elastic.ready(1, 4);
  CHECK_FALSE(elastic.answers[1]);
  elastic.ready(2, 4);
  CHECK(elastic.generations == std::vector<int>{1});
  const rendezvous::JoinReply first = elastic.reply(1), second = elastic.reply(2);
  CHECK(first.rank == 0);
  CHECK(first.size == 2);
  CHECK(first.local_rank == 1);
  CHECK(first.local_size == 1);
  CHECK(first.generation == 1);
  CHECK(first.commits == std::vector<std::int64_t>{4, 4});
  CHECK(second.rank == 1);
  CHECK(second.hostname == "s2");
  CHECK(elastic.job->process_of(0) == 1);
  CHECK(elastic.job->host_of(2) == 1);
  CHECK(elastic.job->host_of(9) == -1);
  CHECK(elastic.job->verdict().outcome().generations.front().processes == std::vector<int>{0, 1, 2});
  CHECK(elastic.job->verdict().outcome().generations.back().processes == std::vector<int>{1, 2});
  CHECK_FALSE(elastic.job->verdict().outcome().generations.front().steps_redone);
  CHECK(elastic.job->verdict().outcome().generations.back().steps_redone == 3);
  CHECK_FALSE(elastic.ended_with);
  elastic.end_well(1);
  elastic.end_well(2);
  CHECK(elastic.ended_with == 0);
}

TEST_CASE("a process is ready for itself alone", "[unit]") {
  ElasticJob elastic("s1:2", 1);
  elastic.request(0, "/v1/join", R"({"rank": 1, "pid": 7, "ready": {"commit": 3, "reason": "", "steps": 0}})");
  REQUIRE(elastic.answers[0]);
  CHECK(elastic.answers[0]->status == 400);
  CHECK_THAT(elastic.answers[0]->body.str(), ContainsSubstring("process 0 cannot be ready for process 1"));
}

TEST_CASE("waits of a generation that has ended, and later requests of it, get 410", "[unit]") {
  ElasticJob elastic("s1:3", 1);
  elastic.request(1, "/v1/gather/x?count=3&index=1&generation=0", "blob");
  CHECK_FALSE(elastic.answers[1]);
  elastic.kill(0);
  REQUIRE(elastic.answers[1]);
  CHECK(elastic.answers[1]->status == 410);
  CHECK_THAT(elastic.answers[1]->body.str(), ContainsSubstring("rank 0 on s1 was killed by signal 9"));
  elastic.ready(1, 0);
  elastic.ready(2, 0);
  elastic.request(1, "/v1/gather/x?count=3&index=1&generation=0", "blob");
  REQUIRE(elastic.answers[1]);
  CHECK(elastic.answers[1]->status == 410);
  elastic.request(1, "/v1/gather/x?count=2&index=0&generation=1", "a");
  elastic.request(2, "/v1/gather/x?count=2&index=1&generation=1", "b");
  REQUIRE(elastic.answers[2]);
  CHECK(rendezvous::decode_blobs(elastic.answers[2]->body) == std::vector<std::string>{"a", "b"});
}

TEST_CASE("a failure after the first rank has ended well is the job's", "[unit]") {
  ElasticJob elastic("s1:2", 1);
  elastic.end_well(0);
  elastic.job->exited(1, Exited{3 << 8, false, false, 0, 0});
  elastic.job->end_if_caused();
  CHECK(elastic.job->verdict().outcome().exit_status() == 3);
}

TEST_CASE("a rank that asks for a generation after another one has ended well gets none", "[unit]") {
  ElasticJob elastic("s1:3", 1);
  elastic.end_well(0);
  elastic.ready(1, 4);
  REQUIRE(elastic.answers[1]);
  CHECK(elastic.answers[1]->status == 410);
  CHECK_THAT(elastic.answers[1]->body.str(), ContainsSubstring("another rank has ended its program with status 0"));
  CHECK(elastic.notices.empty());
  CHECK(elastic.generations.empty());
  elastic.job->exited(1, Exited{1 << 8, false, false, 0, 0});
  elastic.end_well(2);
  CHECK(elastic.job->verdict().outcome().exit_status() == 1);
}

TEST_CASE("a job that cannot go on ends with 125", "[unit]") {
  ElasticJob elastic("s1:1,s2:1", 2);
  elastic.job->host_lost(1, "not heard of for 5 s");
  elastic.ready(0, 0);
  CHECK(elastic.ended_with == 125);
  CHECK_THAT(elastic.job->verdict().outcome().first_failure.detail,
             ContainsSubstring("1 of at least 2 ranks are left"));
  REQUIRE(elastic.answers[0]);
  CHECK(elastic.answers[0]->status == 410);
}

TEST_CASE("a rank that the others have waited for too long is replaced", "[unit]") {
  ElasticJob elastic("s1:2", 1);
  elastic.request(0, "/v1/failing", R"({"own": true, "reason": "'x' waits", "late": 1})");
  CHECK(elastic.notices.size() == 1);
  elastic.ready(0, 0);
  CHECK(elastic.reply(0).size == 1);
}

TEST_CASE("a job that is being ended starts no other process, whatever happens to its ranks and hosts", "[unit]") {
  ElasticJob elastic("s1:1,s2:1,s3:1", 1);
  elastic.job->verdict().interrupted(SIGINT);
  elastic.job->ranks_are_ending();
  SECTION("a host is lost") {
    elastic.job->host_lost(1, "not heard of for 5 s");
  }
  SECTION("a process cannot be started") {
    elastic.job->not_started(1, StartFailed{});
  }
  SECTION("a rank waits too long for another one") {
    elastic.request(0, "/v1/failing", R"({"own": true, "reason": "'x' waits", "late": 1})");
    REQUIRE(elastic.answers[0]);
  }
  CHECK(elastic.starts.empty());
  CHECK(elastic.notices.empty());
  CHECK_FALSE(elastic.ended_with);
  CHECK(elastic.job->verdict().outcome().exit_status() == 128 + SIGINT);
}

TEST_CASE("a time limit ends an elastic job", "[unit]") {
  ElasticJob elastic("s1:2", 1);
  elastic.job->verdict().time_limit_reached(5s);
  elastic.job->end_if_caused();
  CHECK(elastic.ended_with == 124);
}
