#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/pmix/pmix_values.hpp"
#include "launcher/srun_task/step_names.hpp"

namespace runjob {

/// The names of `srun --mpi=pmix`: task 0 puts a value, and slurmd fetches it from task 0's node when another task asks
/// for it. slurmd admits processes of the user only.
/// Life     This process is PMIx's client, and libpmix has a thread, from open() to the destructor. An MPI in the rank
///          is another client.
class PmixNames final : public StepNames {
 public:
  /// Null if the step has no PMIx, if this host has no libpmix, or if slurmd does not accept this task.
  static std::unique_ptr<PmixNames> open(const SlurmTask& task);
  ~PmixNames() override;

  bool publish(std::string_view name, std::string_view value) override;
  std::optional<std::string> look_up(std::string_view name) override;

 private:
  explicit PmixNames(const PmixLibrary& library) : library_(library) {}

  const PmixLibrary library_;
  pmix::Proc self_{};
  std::map<std::string, PmixQuestion, std::less<>> asked_;  // slurmd answers them when task 0 has put the value
};

}  // namespace runjob
