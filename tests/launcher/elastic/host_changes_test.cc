#include "launcher/elastic/host_changes.hpp"

#include <map>

#include <fmt/format.h>

#include "base/error.hpp"
#include "tests/catch.hpp"
#include "tests/launcher/elastic/scripted_membership.hpp"

using namespace runjob;
using Catch::Matchers::EndsWith;

namespace {

struct ChangingJob {
  explicit ChangingJob(const std::string& hosts, ElasticSettings settings)
      : job(hosts, settings),
        changes(job.allocation.hosts, settings, job.membership,
                {[this] { return job.now; },
                 [this](const Host& host) { return obstacles.contains(host.name) ? obstacles.at(host.name) : ""; },
                 [this](const Host& host) { added.push_back(host.name); }, [this] { ++changed; }}) {
    for (const Placement& each : job.allocation.placements) job.membership.entered(each.rank, job.now);
  }

  ScriptedMembership job;
  std::map<std::string, std::string> obstacles;
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

TEST_CASE("more ranks than slots are refused with the slots to add, unless a list may bring them", "[unit]") {
  SECTION("nothing brings them") {
    ChangingJob it("s1:1,me@s2:1", elastic(1, 2));
    CHECK_THROWS_WITH(
        it.changes.resize(4),
        "4 ranks need 4 slots, and the job's hosts have 2 slots; add slots first: runjob resize JOB --add "
        "s1:3");
    it.job.membership.host_lost(0, "lost the agent on s1", it.job.now);  // it is excluded
    CHECK_THROWS_WITH(
        it.changes.resize(2),
        "2 ranks need 2 slots, and the job's hosts have 1 slot (no process starts on s1); add slots first: "
        "runjob resize JOB --add me@s2:2");
    CHECK(it.changed == 0);
    CHECK(it.changes.resize(1) ==
          "the job has 1 rank and may have 1, and its hosts have 1 slot (no process starts on s1)");
    it.changes.add("s1:1");
    CHECK(it.changes.resize(2) == "the job has 1 rank and may have 2, and its hosts have 2 slots");
  }
  SECTION("a hostfile or a discovery script") {
    ElasticSettings settings = elastic(1, 1);
    const bool has_script = GENERATE(false, true);
    (has_script ? settings.discovery_script : settings.hostfile) = "/tmp/hosts";
    ChangingJob it("[fe80::1]:1", settings);
    CHECK(it.changes.resize(2) ==
          fmt::format("the job has 1 rank and may have 2, and its hosts have 1 slot; it grows when "
                      "the {} lists more",
                      has_script ? "discovery script" : "hostfile"));
  }
  SECTION("the host has an address of version 6") {
    ChangingJob it("[fe80::1]:1", elastic(1, 1));
    CHECK_THROWS_WITH(it.changes.resize(2), EndsWith("runjob resize JOB --add [fe80::1]:2"));
  }
}

TEST_CASE("a host that cannot join is refused with the reason", "[unit]") {
  ChangingJob it("s1:1", elastic(1, 1));
  it.obstacles["s3"] = "the ranks on s1 are reached at 127.0.0.1 only";
  CHECK_THROWS_WITH(it.changes.add("s2:1,s3:1"),
                    "--add: s3 cannot join: the ranks on s1 are reached at 127.0.0.1 only");
  CHECK(it.added.empty());
  CHECK(it.changed == 0);
}

TEST_CASE("the last host that has ranks, or slots that can be used, is not removed", "[unit]") {
  ChangingJob it("s1:1", elastic(1, 2));
  it.changes.add("s2:1");
  REQUIRE(it.job.started.size() == 1);
  CHECK_THROWS_WITH(
      it.changes.remove("s1"),
      "--remove: all ranks run on s1, and the job's state is lost with them; remove it when s2 has a rank");
  it.job.membership.host_not_joined(1, "no answer", it.job.now);
  CHECK_THROWS_WITH(
      it.changes.remove("s1"),
      "--remove: without s1 the job has 0 slots (no process starts on s2), fewer than the 1 rank of --min-np");
  it.changes.add("s2:1");
  it.job.ready(it.job.started.back().process, -1);
  it.job.ready(0, 1);
  REQUIRE(it.job.members().size() == 2);
  CHECK(it.changes.remove("s1") == "s1 removed; the job has 2 ranks and may have 2, and its hosts have 1 slot");
}
