#include "hostfile/slurm_task.hpp"

#include "base/error.hpp"
#include "tests/catch.hpp"

using namespace runjob;

namespace {

/// What task 3 of `srun -N2 -n4` gets.
const Environment kTask = {{"SLURM_JOB_ID", "17"},
                           {"SLURM_STEP_ID", "2"},
                           {"SLURM_PROCID", "3"},
                           {"SLURM_STEP_NUM_TASKS", "4"},
                           {"SLURM_NODEID", "1"},
                           {"SLURM_LOCALID", "1"},
                           {"SLURM_STEP_NODELIST", "s[7-8]"},
                           {"SLURM_JOB_NODELIST", "s[5-8]"}};

Environment with(const char* name, const char* value) {
  Environment environment = kTask;
  environment[name] = value;
  return environment;
}

}  // namespace

TEST_CASE("a task of a step knows its place and where task 0 is", "[unit]") {
  const auto task = read_slurm_task(kTask);
  REQUIRE(task);
  CHECK(task->step == "17.2");
  CHECK(task->rank == 3);
  CHECK(task->size == 4);
  CHECK(task->node == 1);
  CHECK(task->node_name == "s8");
  CHECK(task->first_node == "s7");
}

TEST_CASE("the ports that SLURM has reserved for the step are known", "[unit]") {
  CHECK(read_slurm_task(kTask)->reserved_ports.empty());
  CHECK(read_slurm_task(with("SLURM_STEP_RESV_PORTS", "12000-12002,12010"))->reserved_ports ==
        std::vector<int>{12000, 12001, 12002, 12010});
  for (const char* text : {"x", "12002-12000", "0", "70000", "1-2-3", ",1"})
    CHECK_THROWS_WITH(read_slurm_task(with("SLURM_STEP_RESV_PORTS", text)), ContainsSubstring("SLURM_STEP_RESV_PORTS"));
}

TEST_CASE("the socket of srun --mpi=pmi2 is known", "[unit]") {
  CHECK(read_slurm_task(kTask)->pmi_descriptor == -1);
  CHECK(read_slurm_task(with("PMI_FD", "11"))->pmi_descriptor == 11);
  CHECK_THROWS_WITH(read_slurm_task(with("PMI_FD", "x")), ContainsSubstring("PMI_FD"));
}

TEST_CASE("the step's name with srun --mpi=pmix is known, and no other launcher's", "[unit]") {
  CHECK(read_slurm_task(kTask)->pmix_namespace.empty());
  CHECK(read_slurm_task(with("PMIX_NAMESPACE", "slurm.pmix.17.2"))->pmix_namespace == "slurm.pmix.17.2");
  CHECK(read_slurm_task(with("PMIX_NAMESPACE", "prterun-s7-4711@1"))->pmix_namespace.empty());
}

TEST_CASE("what is no rank of SLURM's is no task", "[unit]") {
  CHECK_FALSE(read_slurm_task({}));
  CHECK_FALSE(read_slurm_task(with("SLURM_STEP_ID", "")));            // salloc
  CHECK_FALSE(read_slurm_task(with("SLURM_STEP_ID", "4294967291")));  // a batch script
  CHECK_FALSE(read_slurm_task(with("SLURM_PROCID", "")));             // an agent's rank
  Environment shell = with("SLURM_STEP_NUM_TASKS", "1");              // srun --pty bash
  shell["SLURM_PROCID"] = "0";
  CHECK_FALSE(read_slurm_task(shell));
  CHECK_FALSE(read_slurm_task(with("RUNJOB_RENDEZVOUS", "unix:/tmp/x")));  // something that a rank has started
}

TEST_CASE("a task's variables that make no sense are named", "[unit]") {
  const auto message = [](const char* name, const char* value) -> std::string {
    try {
      static_cast<void>(read_slurm_task(with(name, value)));
    } catch (const Error& error) {
      CHECK(error.code() == Errc::kHostfile);
      return error.what();
    }
    return "";
  };
  CHECK(message("SLURM_PROCID", "4") == "SLURM_PROCID: '4' is not a whole number from 0 to 3");
  CHECK_THAT(message("SLURM_STEP_NUM_TASKS", "x"), ContainsSubstring("SLURM_STEP_NUM_TASKS: 'x' is not"));
  CHECK(message("SLURM_NODEID", "2") == "SLURM_NODEID: '2' is not a whole number from 0 to 1");
  CHECK_THAT(message("SLURM_STEP_NODELIST", "s[7"), ContainsSubstring("SLURM_STEP_NODELIST: column 4"));
  CHECK_THAT(message("SLURM_STEP_NODELIST", ""), ContainsSubstring("SLURM_STEP_NODELIST"));
}
