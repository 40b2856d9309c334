#pragma once

#include <chrono>
#include <functional>

namespace runjob::runtime::nccl {

/// Runs `work` on a thread of its own, named `name`, and waits for it for at most `most`, and not after
/// `is_given_up`, which is asked every 10 ms, returns true. Returns false when it is not done then: the thread goes on
/// by itself, so `work` must own all that it uses.
/// Threads  any. `work` throws nothing.
bool run_bounded(const char* name, std::chrono::milliseconds most, std::function<void()> work,
                 const std::function<bool()>& is_given_up = {});

}  // namespace runjob::runtime::nccl
