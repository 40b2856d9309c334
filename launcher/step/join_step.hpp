#pragma once

#include <chrono>
#include <string>

#include "hostfile/slurm_task.hpp"
#include "launcher/step/munge.hpp"
#include "launcher/step/step_messages.hpp"

namespace runjob {

/// A step as one of its tasks has found it.
struct JoinedStep {
  std::string head;  ///< numeric address at which this task reaches task 0's host
  StepWelcome welcome;
};

/// Finds task 0 on the step's first node and gets what this task needs, when all tasks have come. Tries again until task 0
/// listens. `free_port`: on this node.
/// Threads  any one; blocks, up to `timeout` and a little.
/// Errors   Error(kConnect) naming node, addresses and reason; Error(kAuth) when nobody there is this user's task 0;
///          Error(kUnavailable) with task 0's reason, or when MUNGE does not work.
JoinedStep join_step(const SlurmTask& task, const Munge& munge, int free_port, std::chrono::milliseconds timeout);

}  // namespace runjob
