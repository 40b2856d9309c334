#include "cli/settings/build_job_spec.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <unistd.h>

#include "base/error.hpp"
#include "cli/options/command_line.hpp"
#include "tests/catch.hpp"
#include "tests/shared_folder.hpp"

using namespace runjob;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

namespace {

JobSpec build(const std::vector<std::string>& options, const std::string& directory, Warnings& warnings) {
  return build_job_spec(parse_command_line(options).settings, {{{"HOME", "/root"}}, directory, "node1"}, warnings);
}

JobSpec build(const std::vector<std::string>& options, const std::string& directory = "/") {
  Warnings warnings;
  return build(options, directory, warnings);
}

std::size_t ranks(const std::vector<std::string>& options) {
  return build(options).allocation.placements.size();
}

}  // namespace

TEST_CASE("how many ranks start", "[unit]") {
  CHECK(ranks({}) == 1);
  CHECK(ranks({"-np", "3"}) == 3);
  CHECK(ranks({"-np", "2", "-H", "localhost:4"}) == 2);
  CHECK(ranks({"-H", "localhost:4"}) == 4);
  CHECK(ranks({"-H", "node1:2,127.0.0.1:1,[::1]"}) == 4);
  CHECK(ranks({"-np", "1", "-H", "localhost,elsewhere:4"}) == 1);  // no rank would sit elsewhere
  CHECK(build({}).allocation.hosts.front().name == "localhost");
}

TEST_CASE("without hosts and a number of ranks there is a rank for each GPU, or for each share of them", "[unit]") {
  const auto ranks_beside = [](int gpus, const std::vector<std::string>& options) {
    Warnings warnings;
    const Surroundings surroundings{{{"HOME", "/root"}}, "/", "node1", false, {}, gpus};
    return build_job_spec(parse_command_line(options).settings, surroundings, warnings).allocation.placements.size();
  };
  CHECK(ranks_beside(8, {}) == 8);
  CHECK(ranks_beside(8, {"--gpus-per-rank", "2"}) == 4);
  CHECK(ranks_beside(1, {"--gpus-per-rank", "2"}) == 1);
  CHECK(ranks_beside(8, {"-np", "3"}) == 3);
  CHECK(ranks_beside(8, {"-H", "localhost:2"}) == 2);
  CHECK(ranks_beside(8, {"-H", "localhost"}) == 1);
}

TEST_CASE("without hosts, those of the batch system's job are the job's, all reached by SSH but this one", "[unit]") {
  const auto spec_with = [](const std::vector<std::string>& words) {
    Warnings warnings;
    const Environment job = {{"LSB_JOBID", "7"}, {"LSB_MCPU_HOSTS", "node1 2 node2 4"}};
    JobSpec spec = build_job_spec(parse_command_line(words).settings, {job, "/", "node1"}, warnings);
    CHECK(warnings.empty());
    return spec;
  };
  const JobSpec whole = spec_with({});
  CHECK(whole.allocation.placements.size() == 6);
  CHECK(whole.local_hosts == std::vector<int>{0});
  CHECK_FALSE(whole.slurm);
  CHECK(spec_with({"-np", "3"}).allocation.placements.size() == 3);
  CHECK(spec_with({"-H", "other:5"}).allocation.placements.size() == 5);
  CHECK_THROWS_WITH(spec_with({"-np", "7"}), ContainsSubstring("6 slots"));
}

TEST_CASE("mpirun's ways to place ranks are understood", "[unit]") {
  CHECK(ranks({"-np", "3", "--oversubscribe", "-H", "a:1,b:1"}) == 3);
  CHECK_THROWS_WITH(build({"-np", "3", "--nooversubscribe", "-H", "a:1,b:1"}),
                    ContainsSubstring("do not fit into 2 slots"));
  CHECK(ranks({"-npernode", "2", "-H", "a:2,b:3"}) == 4);
  CHECK(ranks({"-ppn", "2", "-hosts", "a,b"}) == 4);
  CHECK_NOTHROW(build({"-rank-by", "node", "-map-by", "node"}));
  CHECK_NOTHROW(build({"-rank-by", "core", "-np", "2"}));
  CHECK(build({"-bind-to", "core:overload-allowed"}).bind_to == BindTo::kSharedCore);
  CHECK(build({"--start-timeout", "0"}).start_timeout == 30s);
}

TEST_CASE("a number of cores for each rank binds the ranks to cores, unless the user chooses another binding",
          "[unit]") {
  Warnings warnings;
  const auto spec = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"--map-by", "slot:PE=2"});
    return build_job_spec(parse_command_line(words).settings, {{}, "/", "node1"}, warnings);
  };
  CHECK(spec({}).bind_to == BindTo::kCore);
  CHECK(spec({}).map_by.cores_per_rank == 2);
  CHECK(spec({"--oversubscribe"}).bind_to == BindTo::kSharedCore);
  CHECK(spec({"--bind-to", "core:overload-allowed"}).map_by.cores_per_rank == 2);
  CHECK(warnings.empty());
  CHECK(spec({"--bind-to", "none"}).bind_to == BindTo::kNone);
  CHECK(spec({"--bind-to", "numa"}).map_by.cores_per_rank == 0);
  REQUIRE(warnings.size() == 2);
  CHECK(warnings.back() ==
        "--map-by slot:PE=2: PE=2 has no effect with --bind-to numa: it is a number of cores for --bind-to core");
}

TEST_CASE("variables of Horovod that change nothing here are one warning, with those of -x", "[unit]") {
  Warnings warnings;
  const Environment environment = {{"HOROVOD_THREAD_AFFINITY", "1"}, {"HOROVOD_TORUS_ALLREDUCE", "1"}};
  const auto settings =
      parse_command_line({"-x", "HOROVOD_TORUS_ALLREDUCE=0", "-x", "HOROVOD_CONTROLLER=mpi"}).settings;
  build_job_spec(settings, {environment, "/", "node1"}, warnings);
  CHECK(
      warnings ==
      Warnings{"HOROVOD_CONTROLLER, HOROVOD_THREAD_AFFINITY have no effect with runjob; docs/environment.md gives the "
               "reasons"});
}

TEST_CASE("this host is known by its names, others and those with a user or port are reached by SSH", "[unit]") {
  CHECK(build({}).local_hosts == std::vector<int>{0});
  CHECK(build({"-H", "s1,node1,me@localhost,[::1]"}).local_hosts == std::vector<int>{1, 3});
  CHECK(build({"-H", "s1", "--wdir", "/only/there"}).working_directory == "/only/there");
}

TEST_CASE("a job needs no current directory when --wdir names one for the ranks", "[unit]") {
  CHECK_THROWS_WITH(build({}, ""),
                    "the current directory was deleted, and the ranks would run there; change to another one, or name "
                    "one with --wdir");
  CHECK(build({"--wdir", "/tmp"}, "").working_directory == "/tmp");
  CHECK_THROWS_WITH(build({"--wdir", "data"}, ""),
                    "--wdir: 'data' is relative to the current directory, which was deleted; give an absolute path");
}

TEST_CASE("a task that srun has started is one rank, unless hosts are named", "[unit]") {
  Surroundings surroundings{{{"SLURM_JOB_ID", "17"},
                             {"SLURM_STEP_ID", "0"},
                             {"SLURM_PROCID", "0"},
                             {"SLURM_STEP_NUM_TASKS", "4"},
                             {"SLURM_NODEID", "0"},
                             {"SLURM_STEP_NODELIST", "s[1-2]"}},
                            "/",
                            "s1"};
  Warnings warnings;
  const auto build_task = [&](const std::vector<std::string>& options) {
    return build_job_spec(parse_command_line(options).settings, surroundings, warnings);
  };
  const JobSpec spec = build_task({"--start-timeout", "5", "--output-ranks", "0-3"});
  REQUIRE(spec.slurm_task);
  CHECK(spec.slurm_task->size == 4);
  CHECK(spec.start_timeout == 5s);
  CHECK(warnings ==
        Warnings{"--output-ranks has no effect where srun has started the ranks; srun has options of its own"});
  CHECK(build_task({"-np", "4"}).slurm_task);
  CHECK_THROWS_WITH(build_task({"-np", "2"}), ContainsSubstring("-np: srun has started runjob 4 times"));
  CHECK_FALSE(build_task({"-np", "2", "-H", "localhost:2"}).slurm_task);
  warnings.clear();
  surroundings.environment["SLURM_PROCID"] = "1";
  surroundings.environment["HOROVOD_TORUS_ALLREDUCE"] = "1";
  static_cast<void>(build_task({"--output-ranks", "0", "--map-by", "slot:PE=2", "--torus-allreduce"}));
  CHECK(warnings.empty());  // task 0 says it
}

TEST_CASE("networks may be named in either of horovodrun's spellings, and several times", "[unit]") {
  const auto filter = [](const std::vector<std::string>& options) { return build(options).network_interfaces; };
  CHECK(filter({}).text.empty());
  for (const char* spelling : {"--network-interfaces", "--network-interface"}) {
    CHECK(filter({spelling, "eth0,10.0.0.0/8"}).included.size() == 2);
    CHECK(filter({spelling, "eth0", spelling, "^docker"}).excluded.size() == 1);
  }
  CHECK_THROWS_WITH(filter({"--network-interface", "eth0,"}),
                    ContainsSubstring("--network-interface: 'eth0,' has an empty word"));
}

TEST_CASE("every option reaches its field", "[unit]") {
  const JobSpec spec = build({"--wdir",
                              "tmp",
                              "--output-filename",
                              "/tmp/out",
                              "-prefix-timestamp",
                              "--start-timeout",
                              "500ms",
                              "--timeline-filename",
                              "/tmp/t.json",
                              "--status-file",
                              "tmp/s.json",
                              "--verbose",
                              "-x",
                              "A=1",
                              "--timeout",
                              "2h",
                              "--grace-period",
                              "0",
                              "--continue-on-failure",
                              "--stack-traces-on-timeout",
                              "-np",
                              "3",
                              "--tag-output=host,time",
                              "--output-ranks",
                              "0,2",
                              "--stdin",
                              "none"});
  CHECK(spec.working_directory == "/tmp");
  CHECK(spec.output_directory == "/tmp/out");
  CHECK(spec.prefix_output_with_timestamp);
  CHECK(spec.start_timeout == 500ms);
  CHECK(spec.runtime_variables.at("TIMELINE") == "/tmp/t.json");
  CHECK(spec.status_file == "/tmp/s.json");
  CHECK(spec.verbose);
  CHECK(spec.time_limit == 2h);
  CHECK(spec.grace_period == 0s);
  CHECK(spec.continue_on_failure);
  CHECK(spec.stack_traces_on_timeout);
  CHECK_FALSE(spec.forwards_input);
  CHECK(spec.runtime_options == std::vector<std::string>{"--start-timeout", "--timeline-filename"});
  CHECK(spec.tags == TagStyle{false, false, true, true});
  CHECK(spec.output_ranks == std::vector<int>{0, 2});
  CHECK(spec.environment_overrides == Environment{{"A", "1"}});
  CHECK(spec.environment == Environment{{"HOME", "/root"}});
}

TEST_CASE("whether collectives are hierarchical is told to the ranks, when it is said at all", "[unit]") {
  using Variables = std::map<std::string, std::string>;
  const auto told = [](const std::vector<std::string>& options) { return build(options).runtime_variables; };
  CHECK(told({}).empty());
  CHECK(told({"--no-hierarchical-allreduce"}) == Variables{{"HIERARCHICAL_ALLREDUCE", "0"}});
  CHECK(told({"--hierarchical-allgather"}) == Variables{{"HIERARCHICAL_ALLGATHER", "1"}});
  const Settings both = {{"no-hierarchical-allreduce", {{"true"}, "environment RUNJOB_NO_HIERARCHICAL_ALLREDUCE"}},
                         {"hierarchical-allreduce", {{"true"}, "--hierarchical-allreduce"}}};
  Warnings warnings;
  CHECK_THROWS_WITH(build_job_spec(both, {{}, "/", "node1"}, warnings),
                    "environment RUNJOB_NO_HIERARCHICAL_ALLREDUCE contradicts --hierarchical-allreduce; keep one");
}

TEST_CASE("every option for SSH reaches its field", "[unit]") {
  const SshOptions ssh = build({"-p", "2222", "-i", "etc/hostname", "--accept-new-host-keys", "--ssh-command", "ssh -v",
                                "--ssh-concurrency", "7", "--connect-timeout", "500ms"})
                             .ssh;
  CHECK(ssh.port == 2222);
  CHECK(ssh.identity == "/etc/hostname");
  CHECK(ssh.accept_new_host_keys);
  CHECK(ssh.command == "ssh -v");
  CHECK(ssh.concurrency == 7);
  CHECK(ssh.connect_timeout == 500ms);
}

TEST_CASE("a tilde that no shell has replaced is the home directory", "[unit]") {
  std::string home = (fs::temp_directory_path() / "runjob-spec-XXXXXX").string();
  REQUIRE(::mkdtemp(home.data()) != nullptr);
  std::ofstream(home + "/key") << "key";
  Warnings warnings;
  const Settings settings = parse_command_line({"--ssh-identity-file=~/key"}).settings;
  CHECK(build_job_spec(settings, {{{"HOME", home}}, "/", "node1"}, warnings).ssh.identity == home + "/key");
  fs::remove_all(home);
}

TEST_CASE("what is not given has the default of JobSpec", "[unit]") {
  const JobSpec spec = build({});
  CHECK(spec.working_directory == "/");
  CHECK_FALSE(spec.output_directory);
  CHECK_FALSE(spec.prefix_output_with_timestamp);
  CHECK(spec.start_timeout == 30s);
  CHECK(spec.runtime_variables.empty());
  CHECK_FALSE(spec.status_file);
  CHECK_FALSE(spec.verbose);
  CHECK_FALSE(spec.ssh.port);
  CHECK(spec.ssh.identity.empty());
  CHECK_FALSE(spec.ssh.accept_new_host_keys);
  CHECK_FALSE(spec.ssh.command);
  CHECK(spec.ssh.concurrency == 128);
  CHECK(spec.ssh.connect_timeout == 10s);
  CHECK_FALSE(spec.time_limit);
  CHECK(spec.grace_period == 10s);
  CHECK_FALSE(spec.continue_on_failure);
  CHECK(spec.forwards_input);
  CHECK(spec.runtime_options.empty());
  CHECK(spec.tags == TagStyle{});
  CHECK_FALSE(spec.output_ranks);
}

TEST_CASE("placement reaches its fields", "[unit]") {
  const JobSpec spec =
      build({"-H", "a:2,b:2", "--map-by", "node", "--bind-to", "numa", "--gpus-per-rank", "2", "--display-map"});
  CHECK(spec.allocation.placements[1].host == 1);
  CHECK(spec.map_by == MapBy{MapBy::Policy::kNode, 0});
  CHECK(spec.bind_to == BindTo::kNuma);
  CHECK(spec.gpus_per_rank == 2);
  CHECK(spec.display_map);
  CHECK(ranks({"--map-by", "ppr:3:node"}) == 3);
  CHECK(ranks({"-np", "2", "--map-by", "ppr:3:node"}) == 2);
  CHECK(build({}).bind_to == BindTo::kNone);
  CHECK(build({}).gpus_per_rank == 0);
}

TEST_CASE("Open MPI's parameters are ignored aloud, once", "[unit]") {
  Warnings warnings;
  const Settings settings = parse_command_line({"-mca", "pml", "ob1", "-mca", "btl", "^openib"}).settings;
  build_job_spec(settings, {{}, "/", "node1"}, warnings);
  CHECK(warnings == Warnings{"-mca is Open MPI's and has no effect here: pml ob1, btl ^openib"});
}

TEST_CASE("more ranks than a host's GPUs serve is an error", "[unit]") {
  std::string root = (fs::temp_directory_path() / "runjob-spec-XXXXXX").string();
  REQUIRE(::mkdtemp(root.data()) != nullptr);
  std::ofstream(root + "/hosts") << "big slots=2 gpus=0,2,4\n";
  CHECK(build({"--hostfile", "hosts", "--gpus-per-rank", "1"}, root).gpus_per_rank == 1);
  CHECK_THROWS_WITH(
      build({"--hostfile", "hosts", "--gpus-per-rank", "2"}, root),
      "--gpus-per-rank: 2 ranks on big need 4 GPUs, and its gpus= names 3; start fewer ranks there or name more");
  fs::remove_all(root);
}

TEST_CASE("a hostfile is read from where runjob was started and named as it was typed", "[unit]") {
  std::string root = (fs::temp_directory_path() / "runjob-spec-XXXXXX").string();
  REQUIRE(::mkdtemp(root.data()) != nullptr);
  std::ofstream(root + "/hosts") << "# here\nlocalhost slots=3\n";
  CHECK(build({"--hostfile", "hosts"}, root).allocation.placements.size() == 3);
  std::ofstream(root + "/hosts") << "\nlocalhost slots=x\n";
  CHECK_THROWS_WITH(build({"--hostfile", "hosts"}, root),
                    "hosts: line 2, column 17: expected a number of slots, found 'x'");
  fs::remove_all(root);
}

TEST_CASE("a hostfile of another user is read with a note, one that others may write to is refused", "[unit]") {
  if (::getuid() != 0) {
    WARN("skipped: another user needs root");
    return;
  }
  const SharedFolder shared;
  const std::string root = shared.path.string();
  shared.other_user("echo localhost slots=2 > hosts; echo localhost > open; chmod 666 open");
  Warnings warnings;
  const JobSpec spec = build({"--hostfile", "hosts", "--min-np", "1"}, root, warnings);
  CHECK(spec.elastic->hostfile_owner == 65534);
  CHECK(warnings == Warnings{"--hostfile: hosts belongs to user 65534, who chooses the hosts of this job"});
  CHECK_THROWS_WITH(build({"--hostfile", "open"}, root),
                    "bad permissions on hostfile open: others may write to it; chmod go-w open");
}

TEST_CASE("option -x wins over files of variables, and a later file over an earlier one", "[unit]") {
  std::string root = (fs::temp_directory_path() / "runjob-spec-XXXXXX").string();
  REQUIRE(::mkdtemp(root.data()) != nullptr);
  std::ofstream(root + "/a") << "A=of a\nB=of a\nC=of a\nHOME\n";
  std::ofstream(root + "/b") << "A=of b\nB=of b\n";
  CHECK(build({"--env-file", "a", "-x", "A=option", "--env-file", root + "/b"}, root).environment_overrides ==
        Environment{{"A", "option"}, {"B", "of b"}, {"C", "of a"}, {"HOME", "/root"}});
  CHECK_THROWS_WITH(
      build({"--env-file", "c"}, root),
      "cannot read environment file " + root + "/c: No such file or directory; check the path and its permissions");
  CHECK_THROWS_WITH(build({"--env-file="}, root), "--env-file: the path is empty; give one");
  std::ofstream(root + "/b") << "HOROVOD_FUSION_THRESHOLD=32e6\n";
  CHECK_THROWS_WITH(build({"--env-file", "b"}, root), ContainsSubstring("b HOROVOD_FUSION_THRESHOLD: '32e6' is not a"));
  fs::remove_all(root);
}

TEST_CASE("a user's mistake is one error that names the option", "[unit]") {
  const std::vector<std::pair<std::vector<std::string>, std::string>> table = {
      {{"-np", "0"}, "-np: '0' is not a whole number from 1 to 1000000"},
      {{"-np", "x"}, "-np: 'x' is not a whole number from 1 to 1000000"},
      {{"--num-proc="}, "--num-proc: '' is not a whole number from 1 to 1000000"},
      {{"-np", "5", "-H", "localhost:4"},
       "5 ranks do not fit into 4 slots on 1 host (localhost:4); ask for at most 4 or give more slots, as in "
       "localhost:5"},
      {{"-H", "localhost:x"}, "-H: column 11: expected a number of slots after ':', found 'x'"},
      {{"--hostfile", "/nonexistent"},
       "cannot read hostfile /nonexistent: No such file or directory; check the path and its permissions"},
      {{"--wdir", "/nonexistent"}, "--wdir: /nonexistent: No such file or directory; name a directory that exists"},
      {{"--wdir="}, "--wdir: the path is empty; give one"},
      {{"-x", "=2"}, "-x: '' is not the name of a variable; write NAME or NAME=VALUE"},
      {{"--stdin", "1"}, "--stdin: '1' is neither 0 nor none: only rank 0 can read runjob's standard input"},
      {{"--stdin", "all"}, "--stdin: 'all' is neither 0 nor none: only rank 0 can read runjob's standard input"},
      {{"--status-file", "/nonexistent/s"}, "--status-file: the directory /nonexistent does not exist; make it first"},
      {{"--timeline-filename", "/"}, "--timeline-filename: / is a directory; name a file"},
      {{"--start-timeout", "soon"}, "--start-timeout: 'soon' is not a time such as 30, 0.5, 500ms, 30s, 10m or 2h"},
      {{"-p", "0"}, "-p: '0' is not a whole number from 1 to 65535"},
      {{"-i", "/nonexistent"}, "-i: /nonexistent: No such file or directory; name a file that can be read"},
      {{"--ssh-command="}, "--ssh-command: the command is empty; name a program such as ssh"},
      {{"--ssh-concurrency", "0"}, "--ssh-concurrency: '0' is not a whole number from 1 to 10000"},
      {{"--connect-timeout", "0"}, "--connect-timeout: '0' leaves no time to connect; give a longer one"},
      {{"--timeout", "0"}, "--timeout: '0' leaves no time to run; give a longer one"},
      {{"--tag-output=all"}, "--tag-output: 'all' is neither none nor a list of rank, stream, host and time"},
      {{"--output-ranks", "1"}, "--output-ranks: there is no rank 1 in a job of 1; the last one is 0"},
      {{"--map-by", "core"},
       "--map-by: 'core' is not slot, node or ppr:N:node, which choose a rank's host; --bind-to core, numa or socket "
       "chooses its place there"},
      {{"-npernode", "x"}, "-npernode: 'x' is not a whole number from 1 to 1000000"},
      {{"--rank-by", "node"},
       "--rank-by node: ranks are numbered in the order in which --map-by places them; write --map-by node"},
      {{"-rank-by", "slot", "--map-by", "node"},
       "-rank-by slot: ranks are numbered in the order in which --map-by places them; write --map-by slot"},
      {{"-x", "HOROVOD_FUSION_THRESHOLD=32e6"},
       "-x HOROVOD_FUSION_THRESHOLD: '32e6' is not a size such as 1048576, 512KB, 64MB or 1GB"},
      {{"-bind-to", "l2cache"}, "-bind-to: 'l2cache' is not none, core, numa, socket or gpu"},
      {{"--gpus-per-rank", "0"}, "--gpus-per-rank: '0' is not a whole number from 1 to 1024"},
      {{"--verbose=maybe"}, "--verbose: 'maybe' is not 1 or 0, true or false"},
  };
  for (const auto& [options, message] : table) {
    INFO(options.front());
    CHECK_THROWS_WITH(build(options), message);
  }
}
