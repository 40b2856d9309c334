#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace runjob {

/// The names that `srun --mpi=pmi2` keeps for a step: a task publishes a value under a name, and the others look it up.
/// Only the step's tasks can do so, because each has inherited its own socket. The ranks do not inherit it. The values
/// pass through slurmd and srun in clear text.
/// Owner    the process owns the socket; the destructor reports that PMI is not used any more.
/// Threads  one at a time.
/// Source   SLURM 22.05, src/plugins/mpi/pmi2/pmi1.c and nameserv.c.
class StepNames {
 public:
  /// `descriptor`: PMI_FD. Nullopt if it is no socket, or if PMI does not answer there within `kLimit`.
  static std::optional<StepNames> open(int descriptor);
  ~StepNames();
  StepNames(StepNames&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  StepNames& operator=(StepNames&&) = delete;

  /// `name` and `value` have letters, digits and '-'. False if SLURM has not taken them.
  bool publish(std::string_view name, std::string_view value);
  /// Nullopt if no task has published the name yet, or if SLURM does not answer.
  std::optional<std::string> look_up(std::string_view name);

 private:
  static constexpr std::chrono::seconds kLimit{5};  // for each answer, which srun gives

  explicit StepNames(int descriptor) : descriptor_(descriptor) {}
  std::string ask(const std::string& question);

  int descriptor_;  // -1 once PMI has not answered, and after a move
};

/// The value of a field in a line of PMI-1, such as `port` in "cmd=lookup_result info=ok port=4711"; "" without it.
/// Pure.
std::string pmi_field(std::string_view line, std::string_view name);

}  // namespace runjob
