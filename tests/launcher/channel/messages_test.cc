#include "launcher/channel/messages.hpp"

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/json_text.hpp"
#include "tests/catch.hpp"

using namespace runjob;

TEST_CASE("a launch message survives the channel with every byte", "[unit]") {
  Launch sent;
  sent.command = {"python", "a b.py", "\xff\xfe not UTF-8", ""};
  sent.working_directory = "/tmp/\xe9";
  sent.environment = {
      {"EMPTY", ""}, {"LINES", "one\ntwo\n'three'\""}, {"BYTES", "\xff\x80"}, {"LONG", std::string(100'000, 'v')}};
  LaunchProcess process;
  process.number = 5;
  process.environment = {{"RANK", "5"}};
  process.place.rank = 5;
  process.place.size = 8;
  process.place.hostname = "s1";
  sent.processes = {process};
  sent.topology = R"({"hosts":[]})";
  sent.stdin_process = 0;
  sent.output_window = 1 << 20;
  sent.grace_ms = 2000;
  sent.bind_to = BindTo::kGpu;
  sent.names_gpus = true;
  sent.cores_per_rank = 4;
  sent.gpus_per_rank = 2;
  sent.traceable = true;
  const Launch received = decode<Launch>(encode(sent));
  CHECK(received.command == sent.command);
  CHECK(received.working_directory == sent.working_directory);
  CHECK(received.environment == sent.environment);
  REQUIRE(received.processes.size() == 1);
  CHECK(received.processes[0].number == 5);
  CHECK(received.processes[0].environment == process.environment);
  CHECK(received.processes[0].place == process.place);
  CHECK(received.topology == sent.topology);
  CHECK(received.stdin_process == 0);
  CHECK(received.output_window == 1 << 20);
  CHECK(received.grace_ms == 2000);
  CHECK(received.bind_to == BindTo::kGpu);
  CHECK(received.names_gpus);
  CHECK(received.cores_per_rank == 4);
  CHECK(received.gpus_per_rank == 2);
  CHECK(received.traceable);
}

TEST_CASE("a number that does not fit into its field is an error", "[unit]") {
  const auto exited = [](const nlohmann::json& status) {
    return cbor_bytes({{"wait_status", status},
                       {"out_of_memory", false},
                       {"stopped_by_us", false},
                       {"input_read", 0},
                       {"max_rss_kib", 0},
                       {"cpu_seconds", 0}});
  };
  CHECK(decode<Exited>(exited(-5)).wait_status == -5);
  for (const nlohmann::json& bad : {nlohmann::json(1LL << 40), nlohmann::json(-(1LL << 40)), nlohmann::json(~0ULL)})
    CHECK_THROWS_WITH(decode<Exited>(exited(bad)),
                      ContainsSubstring("a control message that cannot be read: wait_status: ") &&
                          ContainsSubstring("is out of range"));
  for (const nlohmann::json& bad :
       {nlohmann::json(1e300), nlohmann::json(1.5), nlohmann::json("1"), nlohmann::json(true)})
    CHECK_THROWS_WITH(decode<Exited>(exited(bad)), ContainsSubstring("stands where an integer is expected"));
  const auto started = [](const nlohmann::json& cpus) {
    return cbor_bytes({{"pid", 1}, {"cpus", cpus}, {"gpus", nlohmann::json::array()}});
  };
  CHECK(decode<Started>(started({1, 2})).cpus == std::vector<int>{1, 2});
  CHECK_THROWS_WITH(decode<Started>(started({1LL << 40})), ContainsSubstring("is out of range"));
  CHECK_THROWS_AS(decode<Started>(started(5)), Error);
  CHECK_THROWS_AS(decode<StartFailed>(cbor_bytes({{"step", 1LL << 32}, {"errno", 0}, {"text", ""}})), Error);
}

TEST_CASE("the small messages survive the channel", "[unit]") {
  const Hello hello = decode<Hello>(encode(Hello{"1.2.3", 77, "s1", 64, 128, 12345, {}}));
  CHECK(hello.version == "1.2.3");
  CHECK(hello.pid == 77);
  CHECK(hello.hostname == "s1");
  CHECK(hello.cores == 64);
  CHECK(hello.online_cores == 128);
  CHECK(hello.free_port == 12345);
  const Started started = decode<Started>(encode(Started{99, {0, 2}, {"GPU 0 (GPU-5d)"}}));
  CHECK(started.pid == 99);
  CHECK(started.cpus == std::vector<int>{0, 2});
  const StartFailed failed = decode<StartFailed>(encode(StartFailed{StartFailed::Step::kExec, 2, "text"}));
  CHECK(failed.text == "text");
  CHECK(failed.step == StartFailed::Step::kExec);
  CHECK(failed.error_number == 2);
  const Exited exited = decode<Exited>(encode(Exited{9, true, false, 7, 1024, 0.5}));
  CHECK(exited.input_read == 7);
  CHECK(exited.wait_status == 9);
  CHECK(exited.out_of_memory);
  CHECK_FALSE(exited.stopped_by_us);
  CHECK(exited.max_rss_kib == 1024);
  CHECK(exited.cpu_seconds == 0.5);
  CHECK(decode<Credit>(encode(Credit{7})).bytes == 7);
  const StackTrace trace = decode<StackTrace>(encode(StackTrace{"#0 poll", "why", true}));
  CHECK(trace.native == "#0 poll");
  CHECK(trace.missing == "why");
  CHECK(trace.python);
  const Remaining remaining = decode<Remaining>(encode(Remaining{{{1, 70, "python"}, {-1, 71, "sleep"}}, 8000}));
  CHECK(remaining.left_ms == 8000);
  REQUIRE(remaining.processes.size() == 2);
  CHECK(remaining.processes[0].number == 1);
  CHECK(remaining.processes[1].pid == 71);
  CHECK(remaining.processes[1].name == "sleep");
  CHECK(decode<Signal>(encode(Signal{10})).number == 10);
  CHECK(decode<End>(encode(End{2, 0, false})).grace_ms == 0);
  CHECK(decode<End>(encode(End{15, 0, true})).told);
  const RelayedRequest request =
      decode<RelayedRequest>(encode(RelayedRequest{4, {"PUT", "/v1/kv/a/b", std::string("\0\xff", 2), 1}}));
  CHECK(request.id == 4);
  CHECK(request.request.body == std::string("\0\xff", 2));
  CHECK(request.request.process == 1);
  const RelayedReply reply = decode<RelayedReply>(encode(RelayedReply{4, {404, "text/plain", "no"}}));
  CHECK(reply.response.status == 404);
  CHECK(reply.response.content_type == "text/plain");
  CHECK(reply.response.body.str() == "no");
}

TEST_CASE("what an agent says of its networks survives the channel", "[unit]") {
  Hello sent;
  sent.network.interfaces = {{"lo", 0, true, false, true, false, {{"127.0.0.1", 8}, {"::1", 128}}},
                             {"ib0", 100'000, false, true, false, true, {{"10.1.0.5", 24}}}};
  CHECK(decode<Hello>(encode(sent)).network == sent.network);
}

TEST_CASE("a control message that is none is refused, never misread", "[unit]") {
  const std::string good = encode(Hello{"1", 1, "h", 1, 1, 1, {}});
  CHECK_THROWS_AS(decode<Hello>(""), Error);
  CHECK_THROWS_AS(decode<Hello>(good.substr(0, good.size() - 1)), Error);
  CHECK_THROWS_AS(decode<Hello>(good + "x"), Error);
  CHECK_THROWS_AS(decode<Hello>("\xa0"), Error);  // an empty map
  CHECK_THROWS_AS(decode<Credit>(good), Error);   // another message
  CHECK_THROWS_AS(decode<Credit>(encode(Credit{-1})), Error);
  CHECK_THROWS_AS(decode<Launch>(encode(Launch{})), Error);  // no command
  CHECK_THROWS_WITH(decode<Hello>("\xff"), ContainsSubstring("a control message that cannot be read"));
}
