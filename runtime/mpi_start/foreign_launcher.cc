#include "runtime/mpi_start/foreign_launcher.hpp"

#include <limits>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "base/parse.hpp"

namespace runjob::runtime {
namespace {

bool is_set(const Environment& environment, std::string_view name) {
  return !value_of(environment, name).empty();
}

int number(const Environment& environment, std::string_view name, int low, int otherwise) {
  const std::string_view value = value_of(environment, name);
  if (value.empty()) return otherwise;
  return static_cast<int>(parse_integer(value, name, low, std::numeric_limits<int>::max()));
}

/// The folders beside the launcher's other files. An MPI that has its own libpmix keeps it there, where the system does
/// not look.
std::vector<std::string> library_folders(const Environment& environment) {
  std::vector<std::string> folders;
  const auto add = [&](std::string_view prefix) {
    for (const char* folder : {"lib", "lib64", "lib/openmpi"}) folders.push_back(fmt::format("{}/{}", prefix, folder));
  };
  for (const char* name : {"PMIX_PREFIX", "OPAL_PREFIX", "PRTE_PREFIX"}) {
    if (is_set(environment, name)) add(value_of(environment, name));
  }
  if (is_set(environment, "OMPI_LIBDIR_LOC")) folders.emplace_back(value_of(environment, "OMPI_LIBDIR_LOC"));
  return folders;
}

ForeignLauncher started_with_pmix(const Environment& environment) {
  ForeignLauncher launcher;
  launcher.store = ForeignLauncher::Store::kPmix;
  launcher.pmix_namespace = value_of(environment, "PMIX_NAMESPACE");
  launcher.rank = number(environment, "PMIX_RANK", 0, 0);
  launcher.library_folders = library_folders(environment);
  if (is_set(environment, "OMPI_COMM_WORLD_SIZE")) {
    launcher.name = "Open MPI's mpirun";
    launcher.size = number(environment, "OMPI_COMM_WORLD_SIZE", 1, 1);
  } else if (is_set(environment, "SLURM_STEP_NUM_TASKS")) {
    launcher.name = "srun --mpi=pmix";
    launcher.size = number(environment, "SLURM_STEP_NUM_TASKS", 1, 1);
  } else {
    launcher.name = "a launcher with PMIx";
    launcher.size = 0;
  }
  return launcher;
}

ForeignLauncher started_with_pmi(const Environment& environment) {
  ForeignLauncher launcher;
  launcher.store = ForeignLauncher::Store::kPmi;
  launcher.name = is_set(environment, "I_MPI_HYDRA_UUID")  ? "Intel MPI's mpiexec"
                  : is_set(environment, "MPI_LOCALNRANKS") ? "MPICH's mpiexec"
                  : is_set(environment, "SLURM_STEP_ID")   ? "srun --mpi=pmi2"
                                                           : "a launcher with PMI";
  launcher.rank = number(environment, "PMI_RANK", 0, 0);
  launcher.size = number(environment, "PMI_SIZE", 1, 1);
  launcher.pmi_descriptor = number(environment, "PMI_FD", 0, -1);
  return launcher;
}

/// A process that has a rank, but no key store that runjob can use.
ForeignLauncher started_somehow(const Environment& environment) {
  ForeignLauncher launcher;
  for (const auto& [rank, size, name] :
       {std::tuple("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "Open MPI's mpirun"),
        std::tuple("PMI_RANK", "PMI_SIZE", "a launcher with PMI")}) {
    if (!is_set(environment, rank) || !is_set(environment, size)) continue;
    launcher.rank = number(environment, rank, 0, 0);
    launcher.size = number(environment, size, 1, 1);
    launcher.name = name;
    launcher.store = ForeignLauncher::Store::kUnknown;
    return launcher;
  }
  if (is_set(environment, "PMI_PORT") && is_set(environment, "PMI_ID")) {  // mpiexec -pmi-port
    launcher.name = "a launcher with PMI over a port";
    launcher.size = 0;
    launcher.store = ForeignLauncher::Store::kUnknown;
  }
  return launcher;
}

/// The warning for srun's tasks without any PMI. Each task is then a job of its own, which is never intended when
/// several were started. One of them logs the warning.
std::string warning_of_tasks_alone(const Environment& environment) {
  // No warning in a batch script or a shell of salloc, which are one process each and have SLURM_NTASKS as well.
  if (!is_set(environment, "SLURM_STEP_ID") || value_of(environment, "SLURM_PROCID") != "0") return "";
  const std::string_view tasks = value_of(environment, "SLURM_STEP_NUM_TASKS");
  if (tasks.empty() || tasks == "1") return "";
  return fmt::format(
      "srun has started {} tasks without PMIx or PMI, so that each of them is a job of its own, of size 1; "
      "use srun --mpi=pmix or srun --mpi=pmi2, or srun runjob",
      tasks);
}

}  // namespace

ForeignLauncher read_foreign_launcher(const Environment& environment) {
  const bool has_pmi =
      is_set(environment, "PMI_FD") && is_set(environment, "PMI_RANK") && is_set(environment, "PMI_SIZE");
  const bool has_pmix = is_set(environment, "PMIX_NAMESPACE") && is_set(environment, "PMIX_RANK");
  // MPI_LOCALNRANKS is Hydra's own variable. Within a task of srun --mpi=pmix both are present, and Hydra is the inner
  // launcher.
  const bool is_hydra = has_pmi && is_set(environment, "MPI_LOCALNRANKS");
  ForeignLauncher launcher;
  if (has_pmix && !is_hydra) {
    launcher = started_with_pmix(environment);
  } else if (has_pmi) {
    launcher = started_with_pmi(environment);
  } else {
    launcher = started_somehow(environment);
  }
  if (launcher.size == 1) {
    launcher.store = ForeignLauncher::Store::kNone;
    if (launcher.name.empty()) launcher.warning = warning_of_tasks_alone(environment);
  }
  return launcher;
}

}  // namespace runjob::runtime
