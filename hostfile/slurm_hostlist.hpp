#pragma once

#include <string>
#include <string_view>
#include <vector>

/// The two notations in which SLURM writes down an allocation. Pure functions of text; safe on any bytes.
/// Bounds   kMaxHosts entries, kMaxSlots in each count.
/// Errors   Error(kHostfile) naming `source` (the variable), column and what was expected.
/// Source   Slurm, srun(1), "OUTPUT ENVIRONMENT VARIABLES"; slurm.conf(5), NodeName.
namespace runjob {

/// `n[01-03,7],login2` -> n01 n02 n03 n7 login2. Several brackets in a name, and text after them, are possible; zero
/// padding is kept.
std::vector<std::string> parse_slurm_hostlist(std::string_view text, std::string_view source);

/// `2(x3),1` -> 2 2 2 1.
std::vector<int> parse_slurm_counts(std::string_view text, std::string_view source);

}  // namespace runjob
