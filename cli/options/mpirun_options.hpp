#pragma once

#include <string>
#include <vector>

#include "cli/options/option_table.hpp"

namespace runjob {

/// Options of Open MPI's mpirun and of MPICH's mpiexec that have no row of their own among runjob's options. Part of
/// option_table(). One without `stands_for` and `no_effect` asks for what runjob does anyway, or build_job_spec.cc
/// reads it.
std::vector<Option> mpirun_options();

/// Adds mpirun's and mpiexec's spellings to the options of runjob that mean the same.
void add_mpirun_spellings(std::vector<Option>& options);

}  // namespace runjob
