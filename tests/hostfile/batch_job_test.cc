#include "hostfile/batch_job.hpp"

#include <filesystem>
#include <fstream>
#include <sys/stat.h>

#include "base/error.hpp"
#include "tests/catch.hpp"
#include "tests/hostfile/host_texts.hpp"
#include "tests/shared_folder.hpp"

using namespace runjob;

namespace {

/// "PBS 7: s1:2", or "" outside of a job.
std::string job_in(const Environment& environment) {
  const auto job = read_batch_job(environment);
  return job ? job->system + " " + job->id + ": " + text_of(job->hosts) : "";
}

}  // namespace

TEST_CASE("the variables of a batch system show its job", "[unit]") {
  const SharedFolder shared;
  const std::string file = (shared.path / "hosts").string();
  std::ofstream(file) << "s1\ns1\n";
  CHECK(job_in({{"PBS_JOBID", "7.server"}, {"PBS_NODEFILE", file}}) == "PBS 7.server: s1:2");
  CHECK(job_in({{"LSB_JOBID", "9"}, {"LSB_MCPU_HOSTS", "a 1 b 2"}}) == "LSF 9: a:1 b:2");
  std::ofstream(file) << "s1 3 all.q@s1 UNDEFINED\n";
  CHECK(job_in({{"JOB_ID", "8"}, {"PE_HOSTFILE", file}}) == "Grid Engine 8: s1:3");
}

TEST_CASE("variables that an account may have for good are no job", "[unit]") {
  CHECK(job_in({}) == "");
  CHECK(job_in({{"JOB_ID", "8"}, {"NSLOTS", "1"}}) == "");
  CHECK(job_in({{"PBS_NODEFILE", "/none"}, {"LSB_MCPU_HOSTS", "a 1"}}) == "");
}

TEST_CASE("a list of hosts that is missing, or that others may change, is an error with the variable", "[unit]") {
  CHECK_THROWS_WITH(
      job_in({{"PBS_JOBID", "7"}}),
      "PBS job 7 names no hosts: PBS_NODEFILE is not set; pass it on to runjob, or name the hosts with -H");
  CHECK_THROWS_WITH(job_in({{"LSB_JOBID", "9"}}), ContainsSubstring("LSF job 9 names no hosts: LSB_MCPU_HOSTS"));
  CHECK_THROWS_WITH(job_in({{"PE_HOSTFILE", "/none/f"}}), ContainsSubstring("cannot read PE_HOSTFILE /none/f"));
  const SharedFolder shared;
  const std::string file = (shared.path / "hosts").string();
  std::ofstream(file) << "s1\n";
  ::chmod(file.c_str(), 0666);
  CHECK_THROWS_WITH(job_in({{"PBS_JOBID", "7"}, {"PBS_NODEFILE", file}}),
                    ContainsSubstring("bad permissions on PBS_NODEFILE " + file));
}
