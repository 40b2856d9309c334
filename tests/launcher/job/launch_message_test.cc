#include "launcher/job/launch_message.hpp"

#include "tests/catch.hpp"

using namespace runjob;

namespace {

JobSpec on_two_hosts() {
  JobSpec spec;
  spec.allocation =
      allocate({{"s1", 2, "", {}, "", {}}, {"s2", 2, "", {}, "", {{4, 6}}}}, std::nullopt, {MapBy::Policy::kNode, 0});
  spec.command = {"train"};
  spec.environment = {{"KEPT", "1"}, {"HOME", "/home/me"}};
  spec.environment_overrides = {{"RUNJOB_TIMELINE", "mine"}};
  spec.runtime_variables["TIMELINE"] = "/tmp/t.json";
  spec.gpus_per_rank = 1;
  spec.bind_to = BindTo::kCore;
  return spec;
}

}  // namespace

TEST_CASE("each host's agent gets its own ranks, with what only they get", "[unit]") {
  const JobSpec spec = on_two_hosts();
  const JobVariables job{"j1", 0, 0, "10.0.0.1", 12345};
  HostAddress address;
  address.address = "10.0.0.2";
  const Launch message = launch_message(spec, 1, job, address, 77);
  CHECK(message.command == spec.command);
  CHECK(message.environment == Environment{{"KEPT", "1"}});
  CHECK(message.output_window == 77);
  CHECK(message.grace_ms == 10'000);
  CHECK(message.bind_to == BindTo::kCore);
  CHECK(message.stdin_process == -1);
  REQUIRE(message.processes.size() == 2);
  CHECK(message.processes[1].number == 3);
  const Environment& variables = message.processes[1].environment;
  CHECK(variables.at("RANK") == "3");
  CHECK(variables.at("MASTER_ADDR") == "10.0.0.1");
  CHECK(variables.at("RUNJOB_ADDRESS") == "10.0.0.2");
  CHECK(variables.at("HOROVOD_TIMELINE") == "/tmp/t.json");
  CHECK(variables.at("RUNJOB_TIMELINE") == "mine");  // -x wins
}

TEST_CASE("rank 0 has the launcher's input, unless the user keeps it", "[unit]") {
  JobSpec spec = on_two_hosts();
  CHECK(launch_message(spec, 0, {}, {}, 0).stdin_process == 0);
  spec.forwards_input = false;
  CHECK(launch_message(spec, 0, {}, {}, 0).stdin_process == -1);
}

TEST_CASE("a process that an elastic job starts later is told the number of its host", "[unit]") {
  JobSpec spec = on_two_hosts();
  spec.elastic.emplace();
  Membership::Start start;
  start.process = 9;
  start.rank = 4;
  start.size = 5;
  start.local_rank = 1;
  start.host_number = {2, 3};
  const Launch message = launch_message(spec, spec.allocation.hosts[1], start, {"j1", 3, 7, "10.0.0.1", 1}, {}, 0);
  REQUIRE(message.processes.size() == 1);
  const Environment& variables = message.processes[0].environment;
  CHECK(variables.at("RUNJOB_PROCESS_NUMBER") == "9");
  CHECK(variables.at("RUNJOB_HOSTNAME") == "s2");
  CHECK(variables.at("ROLE_RANK") == "4");
  CHECK(variables.at("GROUP_RANK") == "2");
  CHECK(variables.at("NODE_RANK") == "2");
  CHECK(variables.at("GROUP_WORLD_SIZE") == "3");
  CHECK(variables.at("TORCHELASTIC_RESTART_COUNT") == "3");
  CHECK(variables.at("TORCHELASTIC_MAX_RESTARTS") == "7");
}

TEST_CASE("a number of cores for each rank is its number of threads, unless the user gives one", "[unit]") {
  JobSpec spec = on_two_hosts();
  const auto variables = [&] { return launch_message(spec, 1, {}, {}, 0).processes.front().environment; };
  CHECK_FALSE(variables().contains("OMP_NUM_THREADS"));  // the agent divides its host's cores
  spec.map_by.cores_per_rank = 3;
  CHECK(launch_message(spec, 1, {}, {}, 0).cores_per_rank == 3);
  CHECK(variables().at("OMP_NUM_THREADS") == "3");
  spec.environment["OMP_NUM_THREADS"] = "2";
  CHECK_FALSE(variables().contains("OMP_NUM_THREADS"));  // the rank gets the one of the whole launch
  spec.environment_overrides["OMP_NUM_THREADS"] = "1";
  CHECK(variables().at("OMP_NUM_THREADS") == "1");
}

TEST_CASE("ranks that only lose another one print one line, unless the user wants all", "[unit]") {
  JobSpec spec = on_two_hosts();
  const auto folds = [&] {
    return launch_message(spec, 0, {}, {}, 0).processes.front().environment.at("RUNJOB_FOLD_TRACEBACKS");
  };
  CHECK(folds() == "1");
  spec.verbose = true;
  CHECK(folds() == "0");
  spec.environment_overrides["RUNJOB_FOLD_TRACEBACKS"] = "1";
  CHECK(folds() == "1");
}

TEST_CASE("GPUs that the host list names are shared out here, others by the agent", "[unit]") {
  const JobSpec spec = on_two_hosts();
  const Launch first = launch_message(spec, 0, {}, {}, 0);
  CHECK(first.gpus_per_rank == 1);
  CHECK(first.stdin_process == 0);
  CHECK_FALSE(first.processes[0].environment.contains("CUDA_VISIBLE_DEVICES"));
  const Launch second = launch_message(spec, 1, {}, {}, 0);
  CHECK(second.gpus_per_rank == 1);
  CHECK(second.processes[0].environment.at("CUDA_VISIBLE_DEVICES") == "4");
  CHECK(second.processes[1].environment.at("CUDA_VISIBLE_DEVICES") == "6");
}
