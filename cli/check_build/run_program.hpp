#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/environment.hpp"

namespace runjob {

/// How a short helper program ended and what it wrote.
struct ProgramResult {
  std::string output;   ///< standard output, at most 1 MiB
  std::string problem;  ///< "" = it exited with 0; else "exited with status 1", "was killed by signal 11
                        ///< (Segmentation fault)", "did not end within 10 s", "could not be started: ..."
};

/// Runs `words` (a path or a program on PATH, then its arguments) with `environment`, no input and its standard error
/// discarded, and waits at most `limit`; then it and the rest of its process group are killed. Never throws for
/// what the program does. Threads  any; the caller must not have SIGCHLD ignored.
ProgramResult run_program(const std::vector<std::string>& words, const Environment& environment,
                          std::chrono::milliseconds limit);

}  // namespace runjob
