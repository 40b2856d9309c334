#include "launcher/network/network_probe.hpp"

#include <map>
#include <memory>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include "launcher/agent/probing/probe_listener.hpp"
#include "launcher/agent/probing/probe_round.hpp"
#include "tests/catch.hpp"
#include "tests/launcher/network/networks.hpp"

using namespace runjob;

namespace {

std::vector<ProbedHost> probed(const std::vector<TestHost>& hosts, bool local = false) {
  std::vector<ProbedHost> result;
  for (const TestHost& host : hosts) result.push_back({host.name, facts_of(host), local});
  return result;
}

constexpr NetworkProbe::Times kOneRound{std::chrono::minutes(1), std::chrono::milliseconds(0), {}};
constexpr NetworkProbe::Times kForHours{std::chrono::minutes(1), std::chrono::hours(1), {}};

/// A probe in a loop, and what came of it. A subclass plays the agents.
class Trial {
 public:
  explicit Trial(std::vector<ProbedHost> hosts, const std::vector<std::string>& filter = {},
                 NetworkProbe::Times times = kOneRound)
      : probe(
            context.get_executor(), std::move(hosts), parse_interface_filter(filter, "-x"),
            [this](int host, ToAgent type, const std::string& payload) {
              sent[type] += 1;
              on_frame(host, type, payload);
            },
            [this](const Status& how, const std::vector<HostAddress>& addresses) {
              ++calls;
              status = how;
              for (const HostAddress& each : addresses) chosen.push_back(each.address);
            },
            times) {}
  virtual ~Trial() = default;

  void run() {
    probe.start();
    context.run();  // returns once nothing is left to happen
    CHECK(calls == 1);
  }
  void answer(int host, ToLauncher type, std::string payload) {
    boost::asio::post(context, [this, host, type, payload] { probe.on_frame(host, type, payload); });
  }
  virtual void on_frame(int, ToAgent, const std::string&) {}

  boost::asio::io_context context;
  NetworkProbe probe;
  std::map<ToAgent, int> sent;
  int calls = 0;
  Status status;
  std::vector<std::string> chosen;
};

/// Agents on the hosts of a table.
class TableTrial : public Trial {
 public:
  explicit TableTrial(std::vector<TestHost> hosts, const std::vector<std::string>& filter = {},
                      NetworkProbe::Times times = kOneRound)
      : Trial(probed(hosts), filter, times), hosts_(std::move(hosts)) {}

  void on_frame(int host, ToAgent type, const std::string& payload) override {
    if (type == ToAgent::kProbeListen) {
      ProbeListening reply;
      const auto message = decode<ProbeListen>(payload);
      if (message.asks_for_networks) reply.networks = on_asked(host);
      for (const std::string& address : message.addresses) {
        reply.ports.push_back(address == unusable ? ProbePort{0, EADDRNOTAVAIL} : ProbePort{1000 + host, 0});
      }
      answer(host, ToLauncher::kProbeListening, encode(reply));
    } else if (type == ToAgent::kProbeConnect) {
      ProbeResults reply;
      if (on_round) on_round(hosts_);
      for (const ProbeTarget& target : decode<ProbeConnect>(payload).targets) {
        tried.push_back(hosts_[static_cast<std::size_t>(host)].name + ">" + target.address);
        reply.outcomes.push_back(target.port != 1000 + target.host
                                     ? ProbeOutcome{}
                                     : connect(hosts_[static_cast<std::size_t>(host)],
                                               hosts_[static_cast<std::size_t>(target.host)], target.address, {}));
      }
      answer(host, ToLauncher::kProbeResults, encode(reply));
    }
  }

  std::string unusable;
  std::vector<std::string> tried;
  std::function<void(std::vector<TestHost>& hosts)> on_round;  // before a host makes its attempts
  std::function<NetworkFacts(int host)> on_asked;

 private:
  std::vector<TestHost> hosts_;
};

TestHost host_with(int number, std::vector<TestInterface> interfaces) {
  for (TestInterface& each : interfaces) each.address += std::to_string(number);
  return {"s" + std::to_string(number), std::move(interfaces)};
}

const TestInterface kLan{"eth0", "10.0.0.", 24, 1000, "lan", true};
const TestInterface kVpn{"wg0", "10.7.0.", 24, 0, "vpn", false};

}  // namespace

TEST_CASE("the agents try each other and the launcher chooses", "[unit]") {
  TableTrial trial({host_with(1, {kLan, kVpn}), host_with(2, {kLan, kVpn}), host_with(3, {kLan})});
  trial.run();
  CHECK(trial.status.ok());
  CHECK(trial.chosen == std::vector<std::string>{"10.0.0.1", "10.0.0.2", "10.0.0.3"});
  CHECK(trial.sent ==
        std::map<ToAgent, int>{{ToAgent::kProbeListen, 3}, {ToAgent::kProbeConnect, 3}, {ToAgent::kProbeEnd, 3}});
  for (const std::string& each : trial.tried) CHECK(each.find("10.7.") == each.npos);  // nobody waits for tunnels
}

TEST_CASE("tunnels and containers' networks are tried when there is nothing else", "[unit]") {
  TestInterface apart = kLan;
  apart.cable = "";
  TableTrial trial({host_with(1, {apart, kVpn}), host_with(2, {apart, kVpn})});
  trial.run();
  CHECK(trial.chosen == std::vector<std::string>{"10.7.0.1", "10.7.0.2"});
  CHECK(trial.sent[ToAgent::kProbeConnect] == 4);
  CHECK(trial.sent[ToAgent::kProbeListen] == 2);
}

TEST_CASE("when no address works the error says what was tried, and nothing listens any more", "[unit]") {
  TestInterface apart = kLan;
  apart.cable = "";
  TableTrial trial({host_with(1, {apart}), host_with(2, {apart})});
  trial.unusable = "10.0.0.2";
  trial.run();
  CHECK(trial.status.code() == Errc::kConnect);
  CHECK(trial.status.message() ==
        "s2 cannot reach s1: tried 10.0.0.1 (Connection timed out), and one more such pair; open the network between "
        "them or "
        "choose another with --network-interface");
  CHECK(trial.chosen.empty());
  CHECK(trial.sent[ToAgent::kProbeEnd] == 2);
  CHECK(std::count(trial.tried.begin(), trial.tried.end(), "s1>10.0.0.2") == 0);
}

TEST_CASE("attempts whose packets may have been lost are made again", "[unit]") {
  TestInterface out = kLan;
  out.cable = "";
  TableTrial trial({host_with(1, {out}), host_with(2, {out})}, {}, kForHours);
  int turns = 0;
  trial.on_round = [&turns](std::vector<TestHost>& hosts) {
    if (++turns > 4) hosts = {host_with(1, {kLan}), host_with(2, {kLan})};
  };
  trial.run();
  CHECK(trial.status.message().empty());
  CHECK(trial.chosen == std::vector<std::string>{"10.0.0.1", "10.0.0.2"});
  CHECK(trial.sent ==
        std::map<ToAgent, int>{{ToAgent::kProbeListen, 6}, {ToAgent::kProbeConnect, 6}, {ToAgent::kProbeEnd, 2}});
}

TEST_CASE("a host without an address besides loopback is asked again", "[unit]") {
  TableTrial trial({host_with(1, {kLan}), host_with(2, {})}, {}, kForHours);
  trial.on_asked = [&trial](int) {
    trial.on_round = [](std::vector<TestHost>& hosts) { hosts[1] = host_with(2, {kLan}); };
    return facts_of(host_with(2, {kLan}));
  };
  trial.run();
  CHECK(trial.status.message().empty());
  CHECK(trial.chosen == std::vector<std::string>{"10.0.0.1", "10.0.0.2"});
  CHECK(trial.sent[ToAgent::kProbeListen] == 2 + 1 + 2);
}

TEST_CASE("addresses that refuse are not tried again", "[unit]") {
  TestInterface same = kLan;
  same.address = "10.0.0.7";
  const TestHost one{"s1", {same}}, two{"s2", {same}};
  TableTrial trial({one, two}, {}, kForHours);
  trial.run();
  CHECK_THAT(trial.status.message(), ContainsSubstring("10.0.0.7 (Connection refused)"));
  CHECK(trial.sent[ToAgent::kProbeListen] == 2);
}

TEST_CASE("a filter that leaves a host nothing is an error before anything is tried", "[unit]") {
  TableTrial trial({host_with(1, {kLan}), host_with(2, {kVpn})}, {"eth"});
  trial.run();
  CHECK(trial.status.code() == Errc::kUsage);
  CHECK_THAT(trial.status.message(), ContainsSubstring("s2 has no address that --network-interface eth allows"));
  CHECK(trial.sent.empty());
}

TEST_CASE("one host, or several names of this machine, need no test", "[unit]") {
  const std::vector<TestHost> hosts = {host_with(1, {kLan}), host_with(1, {kLan})};
  const auto chosen = [](std::vector<ProbedHost> these, const std::vector<std::string>& filter) {
    Trial trial(std::move(these), filter);
    trial.run();
    CHECK(trial.sent.empty());
    return trial.chosen;
  };
  CHECK(chosen(probed({hosts[0]}), {}) == std::vector<std::string>{"127.0.0.1"});
  CHECK(chosen(probed({hosts[0]}), {"^lo,eth"}) == std::vector<std::string>{"127.0.0.1"});
  CHECK(chosen(probed({hosts[0]}), {"eth0"}) == std::vector<std::string>{"10.0.0.1"});
  CHECK(chosen(probed(hosts, /*local=*/true), {}) == std::vector<std::string>{"127.0.0.1", "127.0.0.1"});
}

TEST_CASE("an agent that does not answer is named", "[unit]") {
  class Silent : public Trial {
   public:
    using Trial::Trial;
    void on_frame(int host, ToAgent type, const std::string&) override {
      if (host == 0 && type == ToAgent::kProbeListen) {
        answer(host, ToLauncher::kProbeListening, encode(ProbeListening{{{1, 0}, {2, 0}, {3, 0}}}));
      }
    }
  };
  Silent trial(probed({host_with(1, {kLan}), host_with(2, {kLan})}), {}, {std::chrono::milliseconds(10), {}, {}});
  trial.run();
  CHECK(trial.status.code() == Errc::kTimeout);
  CHECK(trial.status.message() == "the agent on s2 did not answer for 0.01 s while the hosts' networks were tried");
  CHECK(trial.sent[ToAgent::kProbeEnd] == 2);
  CHECK_NOTHROW(trial.probe.on_frame(1, ToLauncher::kProbeListening, {}));  // too late to matter
}

TEST_CASE("an agent's answer that does not fit the question is refused", "[unit]") {
  Trial trial(probed({host_with(1, {kLan}), host_with(2, {kLan})}));
  trial.probe.start();
  CHECK_THROWS_WITH(trial.probe.on_frame(0, ToLauncher::kProbeResults, encode(ProbeResults{})),
                    "s1 sent an answer to a probe that it was not asked for");
  CHECK_THROWS_WITH(trial.probe.on_frame(1, ToLauncher::kProbeListening, encode(ProbeListening{{{1, 0}}})),
                    "s2 sent half an answer to a probe");
}

TEST_CASE("an answer to another probe is dropped, and a probe that is given up asks and says no more", "[unit]") {
  Trial trial(probed({host_with(1, {kLan}), host_with(2, {kLan})}));
  trial.probe.start(2);
  CHECK_NOTHROW(trial.probe.on_frame(0, ToLauncher::kProbeResults, encode(ProbeResults{{}, 1})));
  CHECK_NOTHROW(trial.probe.on_frame(0, ToLauncher::kProbeListening, encode(ProbeListening{{}, 1})));
  CHECK_THROWS_WITH(trial.probe.on_frame(0, ToLauncher::kProbeResults, encode(ProbeResults{{}, 2})),
                    "s1 sent an answer to a probe that it was not asked for");
  trial.probe.give_up();
  trial.probe.give_up();
  CHECK(trial.sent[ToAgent::kProbeEnd] == 2);
  CHECK_NOTHROW(trial.probe.on_frame(1, ToLauncher::kProbeListening, {}));
  trial.context.run();
  CHECK(trial.calls == 0);
}

TEST_CASE("agents on one machine that do not know it find out over loopback", "[net]") {
  class SocketTrial : public Trial {
   public:
    using Trial::Trial;
    void on_frame(int host, ToAgent type, const std::string& payload) override {
      if (type == ToAgent::kProbeListen) {
        listeners_[host] = std::make_unique<ProbeListener>(context.get_executor(), decode<ProbeListen>(payload));
        answer(host, ToLauncher::kProbeListening, encode(listeners_[host]->listening()));
      } else if (type == ToAgent::kProbeConnect) {
        rounds_[host] = std::make_unique<ProbeRound>(
            context.get_executor(), decode<ProbeConnect>(payload),
            [this, host](const ProbeResults& results) { answer(host, ToLauncher::kProbeResults, encode(results)); });
      } else {
        listeners_.erase(host);
      }
    }

   private:
    std::map<int, std::unique_ptr<ProbeListener>> listeners_;
    std::map<int, std::unique_ptr<ProbeRound>> rounds_;
  };
  SocketTrial trial(probed({{"a", {}}, {"b", {}}, {"c", {}}}));
  trial.run();
  CHECK(trial.status.message().empty());
  CHECK(trial.chosen == std::vector<std::string>{"127.0.0.1", "127.0.0.1", "127.0.0.1"});
}
