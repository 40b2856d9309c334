#include "launcher/slurm/srun_command.hpp"

#include <algorithm>

#include "tests/catch.hpp"

using namespace runjob;

using Words = std::vector<std::string>;

namespace {

bool has(const Words& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

}  // namespace

TEST_CASE("srun starts one agent on each node, in one step", "[unit]") {
  const Words all = srun_command({"s1", "s2"}, true, "/opt/runjob-agent");
  CHECK(all.front() == "srun");
  CHECK(Words(all.end() - 2, all.end()) == Words{"/opt/runjob-agent", "--called"});
  for (const char* word : {"--nodes=2", "--ntasks=2", "--ntasks-per-node=1", "--input=all", "--kill-on-bad-exit=0"})
    CHECK(has(all, word));
  CHECK(std::none_of(all.begin(), all.end(), [](const std::string& word) { return word.starts_with("--nodelist"); }));
  const Words some = srun_command({"s1", "s3"}, false, "/opt/runjob-agent");
  CHECK(has(some, "--nodelist=s1,s3"));
}

TEST_CASE("srun's environment names the job and no options of another step", "[unit]") {
  const Environment environment = srun_environment({{"PATH", "/bin"},
                                                    {"HOME", "/home/me"},
                                                    {"TMPDIR", "/scratch/of-this-host"},
                                                    {"DISPLAY", ":0"},
                                                    {"CUDA_VISIBLE_DEVICES", "1"},
                                                    {"SLURM_JOB_ID", "7"},
                                                    {"SLURM_JOBID", "7"},
                                                    {"SLURM_JOB_NODELIST", "s[1-2]"},
                                                    {"SLURM_CONF", "/etc/slurm.conf"},
                                                    {"SLURM_CLUSTER_NAME", "c"},
                                                    {"SLURM_JOB_NAME", "theirs"},
                                                    {"SLURM_JOB_NUM_NODES", "9"},
                                                    {"SLURM_NTASKS", "9"},
                                                    {"SLURM_NTASKS_PER_NODE", "4"},
                                                    {"SLURM_CPUS_PER_TASK", "2"},
                                                    {"SLURM_CPU_BIND", "quiet,mask_cpu:0x1"},
                                                    {"SLURM_DISTRIBUTION", "cyclic"},
                                                    {"SLURM_EXACT", "1"},
                                                    {"SLURM_MEM_PER_CPU", "100"},
                                                    {"SLURM_STEP_ID", "0"},
                                                    {"SLURM_PROCID", "3"},
                                                    {"SLURMD_NODENAME", "s1"},
                                                    {"PMI_RANK", "3"},
                                                    {"PMIX_RANK", "3"},
                                                    {"SRUN_DEBUG", "3"}});
  CHECK(environment == Environment{{"PATH", "/bin"},
                                   {"HOME", "/home/me"},
                                   {"SLURM_JOB_ID", "7"},
                                   {"SLURM_JOBID", "7"},
                                   {"SLURM_JOB_NODELIST", "s[1-2]"},
                                   {"SLURM_CONF", "/etc/slurm.conf"},
                                   {"SLURM_CLUSTER_NAME", "c"},
                                   {"SLURM_OVERLAP", "1"},
                                   {"SLURM_WHOLE", "1"}});
}

TEST_CASE("GPUs that were not asked for by node are warned of", "[unit]") {
  CHECK(gpu_warning({{"SLURM_GPUS_PER_NODE", "2"}, {"SLURM_JOB_ID", "7"}}).empty());
  CHECK_THAT(gpu_warning({{"SLURM_GPUS", "3"}}), ContainsSubstring("were asked for with --gpus; "));
  CHECK_THAT(gpu_warning({{"SLURM_GPUS_PER_TASK", "1"}}), ContainsSubstring("were asked for with --gpus-per-task; "));
}

TEST_CASE("srun's news of agents that ended are understood", "[unit]") {
  CHECK(nodes_that_ended("srun: error: s1: task 0: Exited with exit code 2") == Words{"s1"});
  CHECK(nodes_that_ended("srun: error: s[1-2]: tasks 0-1: Terminated") == Words{"s1", "s2"});
  for (const char* other : {"", "srun: error: Unable to create step for job 7: Invalid node name specified",
                            "srun: error: task 0 launch failed: Invalid", "slurmstepd-s1: error: s1: task 0: x",
                            "srun: error: a b: task 0: x", "srun: error: : task 0"})
    CHECK(nodes_that_ended(other).empty());
}

TEST_CASE("a node that has failed is named too", "[unit]") {
  CHECK(nodes_named("srun: error: Node failure on s2") == Words{"s2"});
  CHECK(nodes_named("srun: error: s3: task 2: Killed") == Words{"s3"});
  CHECK(nodes_named("srun: error: Unable to create step for job 7: Invalid node name specified").empty());
}

TEST_CASE("what srun says when all is well is no news", "[unit]") {
  CHECK(is_noise(""));
  CHECK(is_noise("srun: cluster configuration lacks support for cpu binding"));
  CHECK(is_noise("srun: Job 7 step creation temporarily disabled, retrying (Requested nodes are busy)"));
  CHECK_FALSE(is_noise("srun: error: Unable to create step for job 7: Invalid node name specified"));
}

TEST_CASE("srun's last lines are the reason, with a remedy for an agent that is not there", "[unit]") {
  CHECK(explain_srun({}, "/a") == "srun printed no reason");
  CHECK(explain_srun({"1", "2", "3", "4"}, "/a") == "2; 3; 4");
  const std::string end = "srun: error: s1: task 0: Exited with exit code 125";
  CHECK(explain_srun({end}, "/a") == end);
  CHECK(explain_srun({"runjob: error: agent: why", end, "runjob: error: agent: why"}, "/a") == "why");
  CHECK(explain_srun({"runjob: error: agent: ", end}, "/a") == end);
  CHECK(explain_srun({"runjob: error: agent: "}, "/a") == "srun printed no reason");
  CHECK(explain_srun({"slurmstepd: error: execve(): /a: No such file or directory"}, "/a") ==
        "slurmstepd: error: execve(): /a: No such file or directory; runjob must be at the same path on every node "
        "(/a), on a shared file system for instance");
}
