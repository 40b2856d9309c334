#include "launcher/srun_task/step_names.hpp"

#include "launcher/srun_task/pmi_names.hpp"
#include "launcher/srun_task/pmix_names.hpp"

namespace runjob {

std::unique_ptr<StepNames> open_step_names(const SlurmTask& task) {
  if (!task.reserved_ports.empty()) return nullptr;
  std::unique_ptr<StepNames> names = PmixNames::open(task);
  if (!names) names = PmiNames::open(task.pmi_descriptor);
  return names;
}

}  // namespace runjob
