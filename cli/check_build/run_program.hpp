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

/// Runs `words` (a path or a program on PATH, then its arguments) with `environment`, without input, in a process group
/// of its own, and blocks until it ends. Its standard error is discarded. A program that has not ended after `limit` is
/// killed, with its process group.
/// Threads  any; the process must not ignore SIGCHLD.
/// Errors   ProgramResult::problem for everything that the program does; Error(kSystem) when no pipe can be made.
ProgramResult run_program(const std::vector<std::string>& words, const Environment& environment,
                          std::chrono::milliseconds limit);

}  // namespace runjob
