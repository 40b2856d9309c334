#pragma once

#include <chrono>
#include <string>

#include "hostfile/slurm_task.hpp"
#include "launcher/srun_task/munge.hpp"
#include "launcher/srun_task/step_messages.hpp"
#include "launcher/srun_task/step_names.hpp"

namespace runjob {

/// A step, from the view of one of its tasks.
struct JoinedStep {
  std::string head;  ///< numeric address at which this task reaches task 0's host
  StepWelcome welcome;
};

/// Finds task 0 on the step's first node, and receives this task's welcome when all tasks have announced themselves.
/// Tries again until task 0 listens. Others who listen on its ports, whatever they send, delay it by two seconds at
/// most. `free_port`: one of this node. `names`: of the step, null if it has none.
/// Threads  any one; blocks, up to `timeout` and a little.
/// Errors   Error(kConnect) naming node, addresses and reason, such as that another user listens there;
///          Error(kUnavailable) with task 0's reason, or if MUNGE does not work.
JoinedStep join_step(const SlurmTask& task, const Munge& munge, int free_port, std::chrono::milliseconds timeout,
                     StepNames* names = nullptr);

}  // namespace runjob
