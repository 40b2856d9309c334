#include "launcher/network/probe_messages.hpp"

#include <cerrno>

#include "base/error.hpp"
#include "tests/catch.hpp"

using namespace runjob;

namespace {

const ProbeToken kToken{std::string("\0\xff-question-16-b", 16), std::string("answer-of-16-byt")};

}  // namespace

TEST_CASE("the messages of a probe survive the channel", "[unit]") {
  const auto listen = decode<ProbeListen>(encode(ProbeListen{kToken, {"10.0.0.1", "fd00::1"}}));
  CHECK(listen.token == kToken);
  CHECK(listen.addresses == std::vector<std::string>{"10.0.0.1", "fd00::1"});
  const auto listening = decode<ProbeListening>(encode(ProbeListening{{{40'000, 0}, {0, EADDRNOTAVAIL}}}));
  CHECK(listening.ports == std::vector<ProbePort>{{40'000, 0}, {0, EADDRNOTAVAIL}});
  NetworkFacts networks;
  networks.interfaces = {{"eth0", 1000, false, false, true, true, {{"10.0.0.1", 24}}}};
  CHECK(decode<ProbeListen>(encode(ProbeListen{kToken, {}, 0, true})).asks_for_networks);
  CHECK(decode<ProbeListening>(encode(ProbeListening{{}, 0, networks})).networks == networks);
  const auto connect = decode<ProbeConnect>(encode(ProbeConnect{{{3, "10.0.0.1", 40'000, kToken}}, 700}));
  REQUIRE(connect.targets.size() == 1);
  CHECK(connect.targets[0].host == 3);
  CHECK(connect.targets[0].address == "10.0.0.1");
  CHECK(connect.targets[0].port == 40'000);
  CHECK(connect.targets[0].token == kToken);
  CHECK(connect.limit_ms == 700);
  const std::vector<ProbeOutcome> outcomes = {{ProbeOutcome::Kind::kReached, 0},
                                              {ProbeOutcome::Kind::kFailed, ECONNREFUSED}};
  CHECK(decode<ProbeResults>(encode(ProbeResults{outcomes})).outcomes == outcomes);
}

TEST_CASE("a probe's message that makes no sense is refused", "[unit]") {
  CHECK_THROWS_WITH(decode<ProbeListen>(encode(ProbeListen{{"short", "short"}, {}})),
                    "a control message that cannot be read: token: a probe's token of another size");
  CHECK_THROWS_WITH(decode<ProbeListening>(encode(ProbeListening{{{70'000, 0}}})),
                    "a control message that cannot be read: ports: 70000 is no port");
  CHECK_THROWS_WITH(decode<ProbeConnect>(encode(ProbeConnect{{{0, "10.0.0.1", -1, kToken}}, 1})),
                    "a control message that cannot be read: targets: -1 is no port");
  const ProbeResults wrong{{{static_cast<ProbeOutcome::Kind>(9), 0}}};
  CHECK_THROWS_WITH(decode<ProbeResults>(encode(wrong)),
                    "a control message that cannot be read: outcomes: outcome: 9 is unknown");
  CHECK_THROWS_WITH(decode<ProbeResults>("\xff"), ContainsSubstring("a control message that cannot be read"));
  CHECK_THROWS_AS(decode<ProbeListen>(encode(ProbeResults{})), Error);
}
