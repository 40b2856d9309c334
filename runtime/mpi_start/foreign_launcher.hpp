#pragma once

#include <string>
#include <vector>

#include "base/environment.hpp"

namespace runjob::runtime {

/// The information that another launcher (mpirun, mpiexec or srun) has given this process about its job. A value.
struct ForeignLauncher {
  enum class Store {
    kNone,     ///< there is no other rank to meet
    kPmix,     ///< Open MPI's mpirun, srun --mpi=pmix
    kPmi,      ///< MPICH's mpiexec, srun --mpi=pmi2
    kUnknown,  ///< there are other ranks, but no known way to reach them
  };
  Store store = Store::kNone;
  std::string name;  ///< the name in messages: "Open MPI's mpirun"
  int size = 1;      ///< 0 when the environment does not give it
  int rank = 0;

  std::string pmix_namespace;                ///< the job's name, kPmix only
  std::vector<std::string> library_folders;  ///< folders that may have the launcher's own libpmix, the best guess first
  int pmi_descriptor = -1;                   ///< kPmi only
  std::string warning;                       ///< a warning to be logged; empty for none
};

/// Reads it from the environment. Pure.
/// Errors  Error(kUsage) for a variable of a launcher that is not a number.
ForeignLauncher read_foreign_launcher(const Environment& environment);

}  // namespace runjob::runtime
