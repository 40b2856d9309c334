#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "launcher/srun_task/step_names.hpp"

namespace runjob {

/// The names of `srun --mpi=pmi2`. Each task has inherited its own socket to slurmd; the ranks do not inherit it.
/// Owner    the process owns the socket; the destructor reports that PMI is not used any more.
/// Source   SLURM 22.05, src/plugins/mpi/pmi2/pmi1.c and nameserv.c.
class PmiNames final : public StepNames {
 public:
  /// `descriptor`: PMI_FD. Null if it is no socket, or if PMI does not answer there within `kLimit`.
  static std::unique_ptr<PmiNames> open(int descriptor);
  ~PmiNames() override;

  bool publish(std::string_view name, std::string_view value) override;
  std::optional<std::string> look_up(std::string_view name) override;

 private:
  static constexpr std::chrono::seconds kLimit{5};  // for each answer, which srun gives

  explicit PmiNames(int descriptor) : descriptor_(descriptor) {}
  std::string ask(const std::string& question);

  int descriptor_;  // -1 once PMI has not answered
};

/// The value of a field in a line of PMI-1, such as `port` in "cmd=lookup_result info=ok port=4711"; "" without it.
/// Pure.
std::string pmi_field(std::string_view line, std::string_view name);

}  // namespace runjob
