#include "launcher/sealed_channel/agent_call.hpp"

#include "base/error.hpp"
#include "tests/catch.hpp"

using namespace runjob;
using rendezvous::JobKey;

TEST_CASE("a call survives its line", "[unit]") {
  const AgentCall call{{"10.0.0.1", "fd00::1"}, 4711, JobKey::random()};
  const std::string line = encode(call);
  CHECK(line == "runjob-call 1 4711 " + call.key.hex() + " 10.0.0.1 fd00::1\n");
  for (const std::string& text : {line, line.substr(0, line.size() - 1)}) {
    const AgentCall read = parse_agent_call(text);
    CHECK(read.addresses == call.addresses);
    CHECK(read.port == 4711);
    CHECK(read.key.bytes() == call.key.bytes());
  }
}

TEST_CASE("the longest call fits", "[unit]") {
  AgentCall call{{}, 65535, JobKey::random()};
  for (int i = 0; i < 32; ++i) call.addresses.emplace_back(45, 'f');
  CHECK(encode(call).size() <= kMaxCallBytes);
}

TEST_CASE("what is no call is refused, and the key is not shown", "[unit]") {
  const std::string key = JobKey::random().hex();
  for (const std::string bad : {"", "hello", "runjob-call", "runjob-call 1", "runjob-call 1 80 KEY"})
    CHECK_THROWS_WITH(parse_agent_call(bad),
                      "standard input holds no call of this version of runjob; runjob-agent is started by runjob, not "
                      "by hand");
  CHECK_THROWS_AS(parse_agent_call("runjob-call 2 80 " + key + " 10.0.0.1"), Error);
  CHECK_THROWS_WITH(parse_agent_call("runjob-call 1 0 " + key + " 10.0.0.1"),
                    "a call that cannot be read: port: '0' is not a whole number from 1 to 65535");
  CHECK_THROWS_WITH(parse_agent_call("runjob-call 1 80 " + key + "0 10.0.0.1"),
                    "a call that cannot be read: a job's key is 64 hexadecimal digits");
}
