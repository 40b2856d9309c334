#include "launcher/srun_task/step_messages.hpp"

#include <set>

#include "base/error.hpp"
#include "tests/catch.hpp"

using namespace runjob;

namespace {

Errc code_of(const auto& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code();
  }
  return Errc::kOk;
}

const StepHello kHello{"17.2", "abc", 3, 4, 1, "s8", 12345};

}  // namespace

TEST_CASE("the messages of a step arrive as they were", "[unit]") {
  const StepHello hello = parse_step_hello(encode(kHello));
  CHECK(hello.step == "17.2");
  CHECK(hello.nonce == "abc");
  CHECK(hello.rank == 3);
  CHECK(hello.size == 4);
  CHECK(hello.node == 1);
  CHECK(hello.node_name == "s8");
  CHECK(hello.free_port == 12345);

  const auto key = rendezvous::JobKey::random();
  const StepWelcome welcome =
      parse_step_welcome(encode(StepWelcome{"abc", 4711, key, "10.0.0.3", {{"RANK", "3"}}}), "abc");
  CHECK(welcome.port == 4711);
  CHECK(welcome.key.bytes() == key.bytes());
  CHECK(welcome.address == "10.0.0.3");
  CHECK(welcome.variables == Environment{{"RANK", "3"}});

  const StepEnd end = parse_step_end(encode(StepEnd{7, 1500}));
  CHECK(end.status == 7);
  CHECK(end.grace_ms == 1500);
}

TEST_CASE("a welcome that answers another question is refused", "[unit]") {
  const std::string welcome = encode(StepWelcome{"abc", 4711, rendezvous::JobKey::random(), "", {}});
  CHECK(code_of([&] { parse_step_welcome(welcome, "abd"); }) == Errc::kAuth);
  CHECK(code_of([&] { parse_step_welcome(encode_refusal("abd", "late"), "abc"); }) == Errc::kAuth);
}

TEST_CASE("a refusal says why", "[unit]") {
  CHECK_THROWS_WITH(parse_step_welcome(encode_refusal("abc", "task 3 is late"), "abc"), "task 3 is late");
  CHECK(code_of([&] { parse_step_welcome(encode_refusal("abc", "late"), "abc"); }) == Errc::kUnavailable);
}

TEST_CASE("what is no message of a step is refused", "[unit]") {
  for (const char* text : {"", "x", "[]", "3", "{}", R"({"step": 3, "nonce": "a"})", R"({"nonce": "abc"})",
                           R"({"nonce": "abc", "port": 1, "key": "12", "address": "", "variables": []})"}) {
    INFO(text);
    CHECK(code_of([&] { parse_step_hello(text); }) == Errc::kProtocol);
    CHECK(code_of([&] { parse_step_end(text); }) == Errc::kProtocol);
    CHECK(code_of([&] { parse_step_welcome(text, "abc"); }) != Errc::kOk);
  }
}

TEST_CASE("every task finds the same ports, and another step's tasks others", "[unit]") {
  const auto step_ports = [](const char* step) { return runjob::step_ports({step, 0, 2, 0, "s1", "s1", {}}); };
  CHECK(step_ports("17.2") == step_ports("17.2"));
  CHECK(step_ports("17.2").size() == 64);
  std::set<int> ports;
  for (const char* step : {"17.0", "17.1", "18.0", "18.1"}) {
    const std::vector<int> its = step_ports(step);
    CHECK(std::set<int>(its.begin(), its.end()).size() == 64);
    for (const int port : its) {
      CHECK((port >= 10'000 && port < 32'768));
      ports.insert(port);
    }
  }
  CHECK(ports.size() > 240);
  const auto reserved = runjob::step_ports({"17.2", 0, 2, 0, "s1", "s1", {12'000, 12'001}});
  CHECK(std::vector<int>(reserved.begin(), reserved.begin() + 2) == std::vector<int>{12'000, 12'001});
  CHECK(reserved.size() == 66);
}
