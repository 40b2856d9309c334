#include "launcher/network/newcomer_probe.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include "base/error.hpp"
#include "tests/catch.hpp"
#include "tests/launcher/network/networks.hpp"

using namespace runjob;

namespace {

const TestInterface kLan{"eth0", "10.0.0.", 24, 1000, "lan", true};
const TestInterface kOther{"eth1", "10.1.0.", 24, 100, "other", false};

TestHost host_with(int number, std::vector<TestInterface> interfaces) {
  for (TestInterface& each : interfaces) each.address += std::to_string(number);
  return {"s" + std::to_string(number), std::move(interfaces)};
}

NewcomerProbe::Member member(int host, const TestHost& of, const std::string& address, bool local = false) {
  return {host, {of.name, facts_of(of), local}, {address, false, "eth0", {"eth0"}}};
}

/// Agents of the hosts play their part. Host 7 is the newcomer; the others have ranks.
struct Trial {
  Trial(const TestHost& newcomer, const std::vector<NewcomerProbe::Member>& members, std::map<int, TestHost> known,
        bool local = false)
      : hosts(std::move(known)),
        probe(
            context.get_executor(), member(7, newcomer, "", local), members, {},
            [this](int host, ToAgent type, const std::string& payload) { on_frame(host, type, payload); },
            [this](const Status& how, const HostAddress& address) {
              status = how;
              chosen = address.address;
            },
            {std::chrono::minutes(1), std::chrono::milliseconds(0), {}}) {
    hosts[7] = newcomer;
    probe.start();
    context.run();
  }

  void on_frame(int host, ToAgent type, const std::string& payload) {
    if (type == ToAgent::kProbeListen) {
      ProbeListening reply;
      for (const std::string& address : decode<ProbeListen>(payload).addresses) {
        listened[host].push_back(address);
        reply.ports.push_back({1000, 0});
      }
      answer(host, ToLauncher::kProbeListening, encode(reply));
    } else if (type == ToAgent::kProbeConnect) {
      ProbeResults reply;
      for (const ProbeTarget& target : decode<ProbeConnect>(payload).targets) {
        ProbeOutcome outcome;
        for (const auto& [index, to] : hosts) {
          if (index == host) continue;
          const ProbeOutcome found = connect(hosts.at(host), to, target.address, {});
          if (found.kind == ProbeOutcome::Kind::kReached) outcome = found;
        }
        reply.outcomes.push_back(outcome);
      }
      answer(host, ToLauncher::kProbeResults, encode(reply));
    }
  }
  void answer(int host, ToLauncher type, std::string payload) {
    boost::asio::post(context, [this, host, type, payload] { probe.on_frame(host, type, payload); });
  }

  boost::asio::io_context context;
  std::map<int, TestHost> hosts;
  std::map<int, std::vector<std::string>> listened;
  Status status;
  std::string chosen;
  NewcomerProbe probe;
};

}  // namespace

TEST_CASE("a newcomer gets the address by which the running hosts reach it, and these keep theirs", "[unit]") {
  const TestHost one = host_with(1, {kLan, kOther}), two = host_with(2, {kLan});
  const Trial trial(host_with(3, {kOther, kLan}), {member(0, one, "10.0.0.1"), member(2, two, "10.0.0.2")},
                    {{0, one}, {2, two}});
  CHECK(trial.status.ok());
  CHECK(trial.chosen == "10.0.0.3");
  CHECK(trial.listened.at(0) == std::vector<std::string>{"10.0.0.1"});
  CHECK(trial.listened.at(2) == std::vector<std::string>{"10.0.0.2"});
  CHECK(trial.probe.asks(2));
  CHECK_FALSE(trial.probe.asks(1));
}

TEST_CASE("a host keeps the address of its ranks although its cable was out when its agent described it", "[unit]") {
  const TestHost one = host_with(1, {kLan});
  NewcomerProbe::Member known = member(0, one, "10.0.0.1");
  for (NetworkInterface& each : known.probed.facts.interfaces) each.carrier = false;
  const Trial trial(host_with(3, {kLan}), {known}, {{0, one}});
  CHECK(trial.status.message().empty());
  CHECK(trial.chosen == "10.0.0.3");
}

TEST_CASE("a newcomer that the ranks cannot reach is refused", "[unit]") {
  const TestHost one = host_with(1, {kLan});
  const Trial trial(host_with(3, {kOther}), {member(0, one, "10.0.0.1")}, {{0, one}});
  CHECK(trial.status.code() == Errc::kConnect);
  CHECK_THAT(trial.status.message(), ContainsSubstring("s3"));
}

TEST_CASE("names of one machine share an address, and ranks at loopback get no neighbours", "[unit]") {
  const TestHost one = host_with(1, {kLan});
  const Trial same(one, {member(0, one, "10.0.0.1", true)}, {{0, one}}, /*local=*/true);
  CHECK(same.chosen == "10.0.0.1");
  const Trial apart(host_with(3, {kLan}), {member(0, one, "127.0.0.1", true)}, {{0, one}});
  CHECK(apart.status.code() == Errc::kUsage);
  CHECK_THAT(apart.status.message(), ContainsSubstring("the ranks on s1 are reached at 127.0.0.1 only"));
}

TEST_CASE("loopback is left out unless there is nothing else", "[unit]") {
  CHECK(facts_without_loopback(facts_of(host_with(1, {kLan}))).interfaces.size() == 1);
  CHECK(facts_without_loopback(facts_of(host_with(1, {}))).interfaces.size() == 1);
}

TEST_CASE("a newcomer to a job that has lost all its hosts gets an address that others can reach", "[unit]") {
  const Trial trial(host_with(3, {kLan}), {}, {});
  CHECK(trial.status.ok());
  CHECK(trial.chosen == "10.0.0.3");
  CHECK(trial.listened.empty());
}
