#include "hostfile/slurm_allocation.hpp"

#include "base/error.hpp"
#include "tests/catch.hpp"
#include "tests/hostfile/host_texts.hpp"

using namespace runjob;

namespace {

/// What sbatch and salloc set for `--nodes=2 --ntasks=5`.
const Environment kJob = {{"SLURM_JOB_ID", "17"},
                          {"SLURM_JOB_NODELIST", "s[1-2]"},
                          {"SLURM_JOB_CPUS_PER_NODE", "8(x2)"},
                          {"SLURM_TASKS_PER_NODE", "4,1"}};

Environment with(Environment environment, const Environment& more) {
  for (const auto& [name, value] : more) environment[name] = value;
  return environment;
}

/// "s1:4 s2:1", or "" when there is no allocation.
std::string hosts_in(const Environment& environment) {
  const auto allocation = read_slurm_allocation(environment);
  return allocation ? text_of(allocation->hosts) : "";
}

}  // namespace

TEST_CASE("an allocation's nodes have as many slots as SLURM planned tasks for", "[unit]") {
  CHECK(hosts_in(kJob) == "s1:4 s2:1");
  CHECK(read_slurm_allocation(kJob)->job_id == "17");
  CHECK(read_slurm_allocation(with(kJob, {{"SLURM_TASKS_PER_NODE", "0,3"}}))->nodes == 2);
  CHECK(hosts_in(with(kJob, {{"SLURM_TASKS_PER_NODE", "2(x2)"}})) == "s1:2 s2:2");
  CHECK(hosts_in(with(kJob, {{"SLURM_TASKS_PER_NODE", "0,3"}})) == "s2:3");
  CHECK(hosts_in({{"SLURM_JOBID", "1"}, {"SLURM_NODELIST", "a,b"}, {"SLURM_TASKS_PER_NODE", "1(x2)"}}) == "a:1 b:1");
}

TEST_CASE("outside of a job there is no allocation", "[unit]") {
  CHECK(hosts_in({}) == "");
  CHECK(hosts_in({{"SLURM_CONF", "/etc/slurm.conf"}}) == "");
  CHECK(hosts_in({{"SLURM_JOB_ID", "1"}}) == "");
  CHECK(hosts_in({{"SLURM_JOB_ID", "1"}, {"SLURM_JOB_NODELIST", ""}}) == "");
}

TEST_CASE("in a step the nodes' CPUs count, as the tasks are the step's", "[unit]") {
  const Environment step = with(kJob, {{"SLURM_STEP_ID", "0"}, {"SLURM_TASKS_PER_NODE", "1"}});
  CHECK(hosts_in(step) == "s1:8 s2:8");
  CHECK(hosts_in(with(step, {{"SLURM_CPUS_PER_TASK", "3"}})) == "s1:2 s2:2");
  CHECK(hosts_in(with(step, {{"SLURM_CPUS_PER_TASK", "16"}})) == "s1:1 s2:1");
  for (const char* own : {"4294967290", "4294967291", "4294967293"})  // of salloc's shell, a batch script
    CHECK(hosts_in(with(kJob, {{"SLURM_STEP_ID", own}})) == "s1:4 s2:1");
}

TEST_CASE("what SLURM does not say is one task for each node", "[unit]") {
  Environment job = kJob;
  job.erase("SLURM_TASKS_PER_NODE");
  CHECK(hosts_in(job) == "s1:8 s2:8");
  job.erase("SLURM_JOB_CPUS_PER_NODE");
  CHECK(hosts_in(job) == "s1:1 s2:1");
}

TEST_CASE("variables that contradict each other are an error that says so", "[unit]") {
  CHECK_THROWS_WITH(read_slurm_allocation(with(kJob, {{"SLURM_TASKS_PER_NODE", "4"}})),
                    "SLURM_TASKS_PER_NODE has numbers for 1 nodes, SLURM_JOB_NODELIST names 2; name the hosts with -H "
                    "instead");
  CHECK_THROWS_WITH(read_slurm_allocation(with(kJob, {{"SLURM_TASKS_PER_NODE", "0(x2)"}})),
                    "SLURM_TASKS_PER_NODE: no node has a task; ask SLURM for some with --ntasks");
  CHECK_THROWS_WITH(read_slurm_allocation(with(kJob, {{"SLURM_JOB_NODELIST", "s[1"}})),
                    "SLURM_JOB_NODELIST: column 4: expected ',' or ']' in the range, found the end");
  CHECK_THROWS_WITH(read_slurm_allocation(with(kJob, {{"SLURM_STEP_ID", "0"}, {"SLURM_CPUS_PER_TASK", "x"}})),
                    "SLURM_CPUS_PER_TASK: 'x' is not a whole number from 1 to 65536");
}

TEST_CASE("a user's step is told from those of SLURM's own", "[unit]") {
  CHECK(is_in_slurm_step({{"SLURM_STEP_ID", "0"}}));
  CHECK(is_in_slurm_step({{"SLURM_STEP_ID", "12"}}));
  for (const char* other : {"", "4294967290", "4294967295", "batch", "-1", "99999999999999999999"})
    CHECK_FALSE(is_in_slurm_step({{"SLURM_STEP_ID", other}}));
  CHECK_FALSE(is_in_slurm_step({}));
}
