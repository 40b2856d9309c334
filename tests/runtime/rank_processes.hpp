#pragma once

#include <functional>
#include <runjob/runjob.h>
#include <string>
#include <vector>

#include "base/environment.hpp"

/// Real ranks for tests: forked processes that meet at a rendezvous of the test's own and use librunjob.so.
namespace runjob::runtime {

/// How a rank ended.
struct Outcome {
  runjob_code code = RUNJOB_OK;
  std::string message;
  int wait_status = 0;  ///< as waitpid() tells it; 0 for a normal end

  bool ok() const { return code == RUNJOB_OK && wait_status == 0; }
};

struct RankOptions {
  std::vector<std::string> hosts;  ///< each rank's
  Environment environment;         ///< added to every rank's
  int start_timeout_seconds = 30;
};

/// `size` ranks on one host named "alpha".
RankOptions on_one_host(int size);

/// Runs `body` in a process for each rank and waits for all. An exception in it becomes RUNJOB_INTERNAL and
/// its text; a rank that dies has no message. The calling process must have one thread.
std::vector<Outcome> run_ranks(const RankOptions& options, const std::function<Outcome(int rank)>& body);

/// The same body in a process without any rendezvous.
Outcome run_alone(const std::function<Outcome()>& body, const Environment& environment = {});

/// What the last failed call of this thread said.
Outcome outcome_of(runjob_code code);

}  // namespace runjob::runtime
