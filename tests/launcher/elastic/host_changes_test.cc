#include "launcher/elastic/host_changes.hpp"

#include "base/error.hpp"
#include "tests/catch.hpp"
#include "tests/launcher/elastic/scripted_membership.hpp"

using namespace runjob;

namespace {

struct ChangingJob {
  explicit ChangingJob(const std::string& hosts, ElasticSettings settings)
      : job(hosts, settings),
        changes(job.allocation.hosts, settings, job.membership,
                {[this] { return job.now; }, [this](const Host& host) { added.push_back(host.name); },
                 [this] { ++changed; }}) {
    for (const Placement& each : job.allocation.placements) job.membership.entered(each.rank, job.now);
  }

  ScriptedMembership job;
  std::vector<std::string> added;
  int changed = 0;
  HostChanges changes;
};

}  // namespace

TEST_CASE("a new list adds hosts, removes hosts and changes slots; hosts keep their indices", "[unit]") {
  ChangingJob it("s1:1,s2:2", elastic(1, 8));
  it.changes.set_list(parse_host_list("s2:1,s3:2"));
  CHECK(it.added == std::vector<std::string>{"s3"});
  CHECK(it.job.notices.back().leaving == std::vector<int>{0, 2});
  REQUIRE(it.job.started.size() == 2);
  CHECK(it.job.started[0].host == 2);
  it.changes.set_list(parse_host_list("s2:1,s3:2"));
  CHECK(it.job.started.size() == 2);  // nothing has changed
  it.changes.set_list(parse_host_list("S1:1,s2:1,s3:2"));
  CHECK(it.changes.hosts().size() == 3);
  CHECK(it.job.membership.roll().hosts.at(0).usable);
}

TEST_CASE("hosts that the user adds or removes stay so when a new list arrives", "[unit]") {
  ChangingJob it("s1:1,s2:1", elastic(1, 2));
  CHECK(
      it.changes.add("s3:2") ==
      "s3 added; the job has 2 ranks and may have 2, and its hosts have 4 slots; runjob resize JOB -np N lets it have "
      "more");
  CHECK(it.changes.remove("s2") ==
        "s2 removed; the job has 2 ranks and may have 2, and its hosts have 3 slots; runjob "
        "resize JOB -np N lets it have more");
  it.changes.set_list(parse_host_list("s1:1,s2:1,s4:1"));
  const auto& hosts = it.job.membership.roll().hosts;
  CHECK_FALSE(hosts.at(1).usable);
  CHECK(hosts.at(2).usable);
  CHECK(hosts.at(3).name == "s4");
  it.changes.add("s2:1");
  CHECK(it.job.membership.roll().hosts.at(1).usable);
}

TEST_CASE("requests that cannot be met are refused in one line, and change nothing", "[unit]") {
  ChangingJob it("s1:2,s2:2", elastic(3, 4));
  CHECK_THROWS_WITH(it.changes.resize(2), "2 is below the 3 of --min-np, with which the job was started");
  CHECK_THROWS_WITH(it.changes.remove("s9"), "--remove: s9 is no host of the job; its hosts are s1, s2");
  CHECK_THROWS_WITH(it.changes.remove("s1"),
                    "--remove: without s1 the job has 2 slots, fewer than the 3 ranks of --min-np");
  CHECK_THROWS_AS(it.changes.add("s5:x"), Error);
  CHECK(it.changed == 0);
  CHECK(it.job.notices.empty());
  CHECK(it.changes.resize(3) ==
        "the job has 4 ranks and may have 3, and its hosts have 4 slots; runjob resize JOB -np "
        "N lets it have more");
}
