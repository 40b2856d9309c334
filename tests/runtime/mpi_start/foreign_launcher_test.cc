#include "runtime/mpi_start/foreign_launcher.hpp"

#include "base/error.hpp"
#include "tests/catch.hpp"
#include "tests/thrown.hpp"

using namespace runjob;
using namespace runjob::runtime;
using Store = ForeignLauncher::Store;

TEST_CASE("a process that nobody has started as a rank is alone", "[mpi_start][unit]") {
  const ForeignLauncher launcher =
      read_foreign_launcher({{"PATH", "/usr/bin"}, {"SLURM_NTASKS", "4"}, {"SLURM_PROCID", "0"}});
  CHECK(launcher.store == Store::kNone);
  CHECK(launcher.warning.empty());
}

TEST_CASE("Open MPI's mpirun has PMIx", "[mpi_start][unit]") {
  const ForeignLauncher launcher = read_foreign_launcher({{"PMIX_NAMESPACE", "771751937"},
                                                          {"PMIX_RANK", "1"},
                                                          {"PMIX_PREFIX", "/opt/mpi"},
                                                          {"OMPI_LIBDIR_LOC", "/opt/mpi/lib64/x"},
                                                          {"OMPI_COMM_WORLD_RANK", "1"},
                                                          {"OMPI_COMM_WORLD_SIZE", "4"}});
  CHECK(launcher.store == Store::kPmix);
  CHECK(launcher.name == "Open MPI's mpirun");
  CHECK(launcher.rank == 1);
  CHECK(launcher.size == 4);
  CHECK(launcher.pmix_namespace == "771751937");
  const std::vector<std::string> folders = {"/opt/mpi/lib", "/opt/mpi/lib64", "/opt/mpi/lib/openmpi",
                                            "/opt/mpi/lib64/x"};
  CHECK(launcher.library_folders == folders);
}

TEST_CASE("srun has PMIx or PMI", "[mpi_start][unit]") {
  const Environment step = {{"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_PROCID", "0"}};
  Environment pmix = step;
  pmix.insert({{"PMIX_NAMESPACE", "slurm.pmix.4.0"}, {"PMIX_RANK", "2"}});
  CHECK(read_foreign_launcher(pmix).store == Store::kPmix);
  CHECK(read_foreign_launcher(pmix).name == "srun --mpi=pmix");
  CHECK(read_foreign_launcher(pmix).size == 4);
  Environment pmi = step;
  pmi.insert({{"PMI_FD", "10"}, {"PMI_RANK", "2"}, {"PMI_SIZE", "4"}});
  CHECK(read_foreign_launcher(pmi).store == Store::kPmi);
  CHECK(read_foreign_launcher(pmi).name == "srun --mpi=pmi2");
  CHECK(read_foreign_launcher(pmi).pmi_descriptor == 10);
}

TEST_CASE("srun's tasks with neither are told, by one of them", "[mpi_start][unit]") {
  const auto warning = [](const char* task, const char* tasks) {
    return read_foreign_launcher({{"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", tasks}, {"SLURM_PROCID", task}})
        .warning;
  };
  CHECK_THAT(warning("0", "4"), ContainsSubstring("srun has started 4 tasks without PMIx or PMI"));
  CHECK_THAT(warning("0", "4"), ContainsSubstring("use srun --mpi=pmix or srun --mpi=pmi2, or srun runjob"));
  CHECK(warning("1", "4").empty());
  CHECK(warning("0", "1").empty());
}

TEST_CASE("MPICH's mpiexec has PMI, also within a task of srun --mpi=pmix", "[mpi_start][unit]") {
  Environment environment = {{"PMI_FD", "9"}, {"PMI_RANK", "0"}, {"PMI_SIZE", "2"}, {"MPI_LOCALNRANKS", "2"}};
  CHECK(read_foreign_launcher(environment).store == Store::kPmi);
  CHECK(read_foreign_launcher(environment).name == "MPICH's mpiexec");
  Environment of_intel = environment;
  of_intel["I_MPI_HYDRA_UUID"] = "1";
  CHECK(read_foreign_launcher(of_intel).name == "Intel MPI's mpiexec");
  environment.insert({{"PMIX_NAMESPACE", "slurm.pmix.4.0"}, {"PMIX_RANK", "0"}});
  CHECK(read_foreign_launcher(environment).store == Store::kPmi);
}

TEST_CASE("a single rank needs nobody", "[mpi_start][unit]") {
  CHECK(read_foreign_launcher({{"PMI_FD", "9"}, {"PMI_RANK", "0"}, {"PMI_SIZE", "1"}}).store == Store::kNone);
  CHECK(read_foreign_launcher({{"PMIX_NAMESPACE", "a"}, {"PMIX_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}}).store ==
        Store::kNone);
}

TEST_CASE("ranks without a key store are known for what they are", "[mpi_start][unit]") {
  const ForeignLauncher launcher =
      read_foreign_launcher({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "3"}});
  CHECK(launcher.store == Store::kUnknown);
  CHECK(launcher.size == 3);
  CHECK(read_foreign_launcher({{"PMI_RANK", "0"}, {"PMI_SIZE", "3"}}).store == Store::kUnknown);
  CHECK(read_foreign_launcher({{"PMI_PORT", "a:1234"}, {"PMI_ID", "0"}}).store == Store::kUnknown);
}

TEST_CASE("a variable that is no number is named", "[mpi_start][unit]") {
  const auto [code, text] = thrown([] {
    read_foreign_launcher({{"PMI_FD", "9"}, {"PMI_RANK", "one"}, {"PMI_SIZE", "2"}});
  });
  CHECK(code == Errc::kUsage);
  CHECK_THAT(text, ContainsSubstring("PMI_RANK: 'one'"));
}
