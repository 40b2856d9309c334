#pragma once

#include <chrono>
#include <functional>

namespace runjob::runtime::nccl {

/// How long after its begin a call may keep a process from exiting.
constexpr std::chrono::milliseconds kExitTime{5000};

/// Runs `work` on a thread of its own, named `name`, and waits for it for at most `most`, and not after
/// `is_given_up`, which is asked every 10 ms, returns true. Returns false when it is not done then: the thread goes on
/// by itself, so `work` must own all that it uses.
///
/// A process that calls exit() waits for such threads, because NCCL and CUDA crash when their exit handlers run while a
/// call is in progress. What is not done kExitTime after its begin is given up: the process ends with its status then,
/// and without the exit handlers that were registered earlier.
/// Threads  any. `work` throws nothing.
bool run_bounded(const char* name, std::chrono::milliseconds most, std::function<void()> work,
                 const std::function<bool()>& is_given_up = {});

}  // namespace runjob::runtime::nccl
