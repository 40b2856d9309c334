#pragma once

#include <functional>
#include <runjob/runjob.h>
#include <vector>

#include "tests/catch.hpp"
#include "tests/runtime/calls.hpp"
#include "tests/runtime/rank_processes.hpp"

namespace runjob::runtime {

inline void check_all_ok(const std::vector<Outcome>& outcomes) {
  for (const Outcome& outcome : outcomes) {
    INFO(outcome.message);
    CHECK(outcome.ok());
  }
}

/// Runs `body` on each rank of a job, between init and shutdown; all must come through.
inline void run_members(const RankOptions& options, const std::function<void(int rank)>& body) {
  check_all_ok(run_ranks(options, [&](int rank) {
    check(runjob_init());
    body(rank);
    return outcome_of(runjob_shutdown());
  }));
}

}  // namespace runjob::runtime
