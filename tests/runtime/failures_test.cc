#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "tests/catch.hpp"
#include "tests/runtime/calls.hpp"
#include "tests/runtime/rank_processes.hpp"

/// What happens when ranks disagree, vanish, or leave.

using namespace runjob::runtime;

namespace {

void check_mismatch(const std::vector<Outcome>& outcomes, const std::string& text) {
  for (const Outcome& outcome : outcomes) {
    INFO(outcome.message);
    CHECK(outcome.code == RUNJOB_MISMATCH);
    CHECK_THAT(outcome.message, ContainsSubstring(text));
  }
}

/// Each rank submits "x" its own way; afterwards the job must still work. The outcome is that of "x".
std::vector<Outcome> disagree(const std::function<runjob_code(int rank, runjob_handle*)>& submit) {
  return run_ranks(on_one_host(2), [&](int rank) {
    check(runjob_init());
    runjob_handle handle = 0;
    check(submit(rank, &handle));
    const Outcome outcome = outcome_of(finish(handle));
    check(small_allreduce("x"));
    check(runjob_shutdown());
    return outcome;
  });
}

float buffer[64], result[64];

runjob_code reduce(const Shape64& shape, runjob_dtype dtype, runjob_reduce_op op, double postscale,
                   runjob_handle* handle) {
  return runjob_allreduce_async("x", buffer, result, shape.data(), static_cast<std::int32_t>(shape.size()), dtype, op,
                                1, postscale, 0, handle);
}

/// Two sums in a row. The first shows that all have come; a rank that goes right after its own first one may take
/// either from the others.
runjob_code reduce_twice() {
  const runjob_code code = small_allreduce("first");
  return code == RUNJOB_OK ? small_allreduce("second") : code;
}

bool killed(const Outcome& outcome) {
  return WIFSIGNALED(outcome.wait_status) && WTERMSIG(outcome.wait_status) == SIGKILL;
}

void check_lost(const Outcome& outcome, const std::string& who) {
  INFO(outcome.message);
  CHECK(outcome.code == RUNJOB_PEER_LOST);
  CHECK_THAT(outcome.message, ContainsSubstring(who + " is gone"));
}

}  // namespace

TEST_CASE("every kind of mismatch is an error on all ranks, and the job goes on", "[runtime][multiproc]") {
  check_mismatch(disagree([](int rank, runjob_handle* handle) {
                   return reduce(rank == 0 ? Shape64{2, 3} : Shape64{3, 2}, RUNJOB_FLOAT32, RUNJOB_SUM, 1, handle);
                 }),
                 "allreduce 'x': the ranks disagree on the shape: [2, 3] on rank 0 (alpha); [3, 2] on rank 1 (alpha)");
  check_mismatch(disagree([](int rank, runjob_handle* handle) {
                   return reduce({4}, rank == 0 ? RUNJOB_FLOAT32 : RUNJOB_INT32, RUNJOB_SUM, 1, handle);
                 }),
                 "dtype: float32 on rank 0 (alpha); int32 on rank 1 (alpha)");
  check_mismatch(disagree([](int rank, runjob_handle* handle) {
                   return reduce({4}, RUNJOB_FLOAT32, rank == 0 ? RUNJOB_SUM : RUNJOB_AVERAGE, 1, handle);
                 }),
                 "reduction: sum on rank 0 (alpha); average on rank 1 (alpha)");
  check_mismatch(disagree([](int rank, runjob_handle* handle) {
                   return reduce({4}, RUNJOB_FLOAT32, RUNJOB_SUM, rank == 0 ? 1 : 2, handle);
                 }),
                 "scaling: prescale 1 and postscale 1 on rank 0");
}

TEST_CASE("mismatches of kind, root and gathered shape are errors on all ranks", "[runtime][multiproc]") {
  static const std::int64_t four = 4;
  static const std::int64_t matrix[] = {2, 2}, other[] = {2, 3};
  check_mismatch(disagree([](int rank, runjob_handle* handle) {
                   return rank == 0 ? reduce({4}, RUNJOB_FLOAT32, RUNJOB_SUM, 1, handle)
                                    : runjob_barrier_async("x", 0, handle);
                 }),
                 "kind of operation: allreduce on rank 0 (alpha); barrier on rank 1 (alpha)");
  check_mismatch(disagree([](int rank, runjob_handle* handle) {
                   return runjob_broadcast_async("x", buffer, &four, 1, RUNJOB_FLOAT32, rank, 0, handle);
                 }),
                 "root: rank 0 on rank 0 (alpha); rank 1 on rank 1 (alpha)");
  check_mismatch(disagree([](int rank, runjob_handle* handle) {
                   return runjob_allgather_async("x", buffer, nullptr, 0, rank == 0 ? matrix : other, 2, RUNJOB_FLOAT32,
                                                 0, handle);
                 }),
                 "shape: [*, 2] on rank 0 (alpha); [*, 3] on rank 1 (alpha)");
}

TEST_CASE("a rank killed while others wait for it ends their operations and is named", "[runtime][multiproc]") {
  const int victim = GENERATE(0, 2);
  const auto outcomes = run_ranks(on_one_host(3), [&](int rank) {
    check(runjob_init());
    if (rank != victim) return outcome_of(reduce_twice());
    check(small_allreduce("first"));
    std::raise(SIGKILL);
    return Outcome();
  });
  for (int rank = 0; rank < 3; ++rank) {
    if (rank == victim) {
      CHECK(killed(outcomes[static_cast<std::size_t>(rank)]));
    } else {
      check_lost(outcomes[static_cast<std::size_t>(rank)], "rank " + std::to_string(victim) + " on alpha");
    }
  }
}

TEST_CASE("a rank killed in the middle of a collective ends it on the others, and is named", "[runtime][multiproc]") {
  const int victim = GENERATE(0, 1);
  RankOptions options = on_one_host(3);
  options.environment = {{"RUNJOB_SHARED_MEMORY", GENERATE("1", "0")}};
  const auto outcomes = run_ranks(options, [&](int rank) {
    check(runjob_init());
    std::vector<float> large(8u << 20);
    const std::vector<float> input(large.size(), 1);
    for (int round = 0;; ++round) {  // the others loop until the loss reaches them
      const auto extent = static_cast<std::int64_t>(large.size());
      runjob_handle handle = 0;
      runjob_code code = runjob_allreduce_async("x", input.data(), large.data(), &extent, 1, RUNJOB_FLOAT32, RUNJOB_SUM,
                                                1, 1, 0, &handle);
      if (rank == victim && round == 1) {
        static_cast<void>(runjob_wait(handle, 0.005));
        std::raise(SIGKILL);
      }
      if (code == RUNJOB_OK) code = finish(handle);
      if (code != RUNJOB_OK) return outcome_of(code);
    }
  });
  for (int rank = 0; rank < 3; ++rank) {
    const Outcome& outcome = outcomes[static_cast<std::size_t>(rank)];
    if (rank == victim) {
      CHECK(killed(outcome));
    } else {
      check_lost(outcome, "rank " + std::to_string(victim) + " on alpha");
    }
  }
}

TEST_CASE("a rank killed anywhere in a step that repeats is named, and no sum is wrong", "[runtime][multiproc]") {
  constexpr int kTensors = 20, kSteps = 12;
  const int last =
      GENERATE(0, 7, 20, 26);  // what the victim submits in its last step; in the last ones it waits for some
  RankOptions options;
  options.hosts =
      GENERATE(std::vector<std::string>{"alpha", "alpha", "alpha"}, std::vector<std::string>{"alpha", "beta", "beta"});
  const int victim = 1;
  const auto outcomes = run_ranks(options, [&](int rank) {
    check(runjob_init());
    for (int step = 0;; ++step) {
      std::vector<std::vector<float>> tensors(kTensors, std::vector<float>(4000, 1));
      std::vector<runjob_handle> handles;
      const bool is_last = rank == victim && step == kSteps;
      for (int i = 0; i < kTensors && !(is_last && i == last); ++i) {
        auto& tensor = tensors[static_cast<std::size_t>(i)];
        const std::int64_t extent = std::ssize(tensor);
        const runjob_code code =
            runjob_allreduce_async(("t" + std::to_string(i)).c_str(), tensor.data(), tensor.data(), &extent, 1,
                                   RUNJOB_FLOAT32, RUNJOB_SUM, 1, 1, 0, &handles.emplace_back());
        if (code != RUNJOB_OK) return outcome_of(code);
      }
      for (int i = 0; is_last && i < last - kTensors; ++i) check(finish(handles[static_cast<std::size_t>(i)]));
      if (is_last) std::raise(SIGKILL);
      for (std::size_t i = 0; i < handles.size(); ++i) {
        const runjob_code code = finish(handles[i]);
        if (code != RUNJOB_OK) return outcome_of(code);
        require(tensors[i] == std::vector<float>(4000, 3), "a wrong sum");
      }
    }
  });
  for (int rank = 0; rank < 3; ++rank) {
    const Outcome& outcome = outcomes[static_cast<std::size_t>(rank)];
    if (rank == victim) {
      CHECK(killed(outcome));
    } else {
      check_lost(outcome, "rank 1 on " + options.hosts[1]);
    }
  }
}

TEST_CASE("after a loss the process lives on: later calls fail alike, and it can start again alone",
          "[runtime][multiproc]") {
  const auto outcomes = run_ranks(on_one_host(2), [](int rank) {
    check(runjob_init());
    if (rank == 1) {
      check(small_allreduce("first"));
      std::raise(SIGKILL);
    }
    require(reduce_twice() == RUNJOB_PEER_LOST, "no loss");
    runjob_handle handle = 0;
    require(runjob_barrier_async("y", 0, &handle) == RUNJOB_PEER_LOST, "submitting after the loss");
    const Outcome outcome = outcome_of(RUNJOB_PEER_LOST);
    check(runjob_shutdown());
    ::unsetenv("RUNJOB_RENDEZVOUS");
    check(runjob_init());
    require(runjob_size() == 1, "size");
    check(small_allreduce("x"));
    check(runjob_shutdown());
    return outcome;
  });
  check_lost(outcomes[0], "rank 1 on alpha");
}

TEST_CASE("a forked child that outlives its rank does not hide its death", "[runtime][multiproc]") {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const auto outcomes = run_ranks(on_one_host(2), [&](int rank) {
    check(runjob_init());
    if (rank == 1) {
      check(small_allreduce("first"));
      if (::fork() == 0) {  // lives until rank 0 has seen the loss
        char byte = 0;
        ::alarm(60);
        ::_exit(::read(ends[0], &byte, 1) == 1 ? 0 : 1);
      }
      std::raise(SIGKILL);
    }
    const Outcome outcome = outcome_of(reduce_twice());
    require(::write(ends[1], "x", 1) == 1, "write");
    return outcome;
  });
  ::close(ends[0]);
  ::close(ends[1]);
  check_lost(outcomes[0], "rank 1 on alpha");
}

TEST_CASE("a shutdown on one rank ends the others' operations and names it", "[runtime][multiproc]") {
  const int leaver = GENERATE(0, 1);
  const auto outcomes = run_ranks(on_one_host(3), [&](int rank) {
    check(runjob_init());
    check(small_allreduce("all here"));
    if (rank == leaver) return outcome_of(runjob_shutdown());
    const Outcome outcome = outcome_of(small_allreduce("x"));
    runjob_handle handle = 0;
    require(runjob_barrier_async("y", 0, &handle) == RUNJOB_ABORTED, "submitting after the goodbye");
    check(runjob_shutdown());
    return outcome;
  });
  for (int rank = 0; rank < 3; ++rank) {
    const Outcome& outcome = outcomes[static_cast<std::size_t>(rank)];
    INFO(outcome.message);
    if (rank == leaver) {
      CHECK(outcome.ok());
    } else {
      CHECK(outcome.code == RUNJOB_ABORTED);
      CHECK(outcome.message == "rank " + std::to_string(leaver) + " on alpha called shutdown() while rank " +
                                   std::to_string(rank) +
                                   " on alpha waits in allreduce 'x': do all ranks take the same number of steps? see "
                                   "join()");
    }
  }
}

TEST_CASE("a shutdown ends this rank's own operations", "[runtime][multiproc]") {
  const auto outcomes = run_ranks(on_one_host(2), [](int rank) {
    check(runjob_init());
    std::vector<float> values(4);
    runjob_handle handle = 0;
    if (rank == 1) {  // stays until rank 0 has left
      require(barrier("never") == RUNJOB_ABORTED, "barrier");
      return outcome_of(runjob_shutdown());
    }
    handle = start_allreduce("only here", values, values, RUNJOB_FLOAT32);
    check(runjob_shutdown());
    return outcome_of(finish(handle));
  });
  CHECK(outcomes[0].code == RUNJOB_ABORTED);
  CHECK(outcomes[0].message == "rank 0 on alpha called shutdown()");
  CHECK(outcomes[1].ok());
}

TEST_CASE("a shutdown does not cut off what other ranks still receive", "[runtime][multiproc]") {
  RankOptions options = on_one_host(3);
  options.environment = {{"RUNJOB_SHARED_MEMORY", GENERATE("1", "0")}};
  const auto outcomes = run_ranks(options, [](int rank) {
    check(runjob_init());
    for (int round = 0; round < 3; ++round) {
      std::vector<float> values(2u << 20, static_cast<float>(rank == 0 ? round : -1));
      const auto extent = static_cast<std::int64_t>(values.size());
      runjob_handle handle = 0;
      check(runjob_broadcast_async("x", values.data(), &extent, 1, RUNJOB_FLOAT32, 0, 0, &handle));
      check(finish(handle));  // the root is done long before the leaves
      require(values.back() == static_cast<float>(round), "value");
    }
    return outcome_of(runjob_shutdown());
  });
  for (const Outcome& outcome : outcomes) {
    INFO(outcome.message);
    CHECK(outcome.ok());
  }
}

TEST_CASE("a stopped rank does not hold up another's shutdown", "[runtime][multiproc]") {
  const auto outcomes = run_ranks(on_one_host(2), [](int rank) {
    check(runjob_init());
    std::vector<std::int32_t> pids(2, 0);
    pids[static_cast<std::size_t>(rank)] = ::getpid();
    check(finish(start_allreduce("pids", pids, pids, RUNJOB_INT32)));
    check(barrier("known"));
    if (rank == 1) {  // stopped by rank 0, and continued by it
      static_cast<void>(small_allreduce("x"));
      return outcome_of(runjob_shutdown());
    }
    ::kill(pids[1], SIGSTOP);
    const auto start = std::chrono::steady_clock::now();
    const runjob_code code = runjob_shutdown();
    const auto time = std::chrono::steady_clock::now() - start;
    ::kill(pids[1], SIGCONT);
    // The contract's second, and one more for a machine that has other things to do.
    require(time < std::chrono::seconds(2), "shutdown took too long");
    return outcome_of(code);
  });
  CHECK(outcomes[0].ok());
  INFO(outcomes[1].message << " " << outcomes[1].wait_status);
  CHECK(outcomes[1].ok());
}

TEST_CASE("an operation that some ranks never submit is ended after the time that was set for it",
          "[runtime][multiproc]") {
  RankOptions options = on_one_host(3);
  options.environment = {{"RUNJOB_STALL_CHECK_TIME_SECONDS", "0.02"},
                         {"RUNJOB_STALL_SHUTDOWN_TIME_SECONDS", "1"},
                         {"RUNJOB_SHARED_MEMORY", GENERATE("0", "1")}};
  const bool is_known = GENERATE(false, true);
  const auto outcomes = run_ranks(options, [&](int rank) {
    check(runjob_init());
    if (is_known) check(small_allreduce("x"));
    check(small_allreduce("before"));
    return outcome_of(small_allreduce(rank == 1 ? "y" : "x"));
  });
  for (const Outcome& outcome : outcomes) {
    INFO(outcome.message);
    CHECK(outcome.code == RUNJOB_TIMEOUT);
    CHECK_THAT(
        outcome.message,
        ContainsSubstring("ranks 0 (alpha), 2 (alpha) wait in allreduce 'x' and rank 1 on alpha in allreduce 'y': "));
    CHECK_THAT(outcome.message, ContainsSubstring("(RUNJOB_STALL_SHUTDOWN_TIME_SECONDS)"));
  }
}

TEST_CASE("ranks that wait for one that does nothing at all end after the time that was set", "[runtime][multiproc]") {
  RankOptions options = on_one_host(3);
  int ended[2];
  REQUIRE(::pipe(ended) == 0);
  options.environment = {{"RUNJOB_STALL_SHUTDOWN_TIME_SECONDS", "1"}, {"RUNJOB_SHARED_MEMORY", GENERATE("0", "1")}};
  const auto outcomes = run_ranks(options, [&](int rank) {
    check(runjob_init());
    check(small_allreduce("before"));
    if (rank != 2) {
      const Outcome outcome = outcome_of(small_allreduce("x"));
      require(::write(ended[1], "x", 1) == 1, "write");
      return outcome;
    }
    char byte = 0;
    for (int rank_ended = 0; rank_ended < 2; ++rank_ended) require(::read(ended[0], &byte, 1) == 1, "read");
    return Outcome();
  });
  for (const int rank : {0, 1}) {
    const Outcome& outcome = outcomes[static_cast<std::size_t>(rank)];
    INFO(outcome.message);
    CHECK(outcome.code == RUNJOB_TIMEOUT);
    CHECK_THAT(outcome.message, ContainsSubstring("rank 2 on alpha (last submitted 'before')"));
  }
  for (const int end : ended) ::close(end);
}

TEST_CASE("a process that exits without shutdown neither hangs nor crashes, and the others are told",
          "[runtime][multiproc]") {
  const auto outcomes = run_ranks(on_one_host(2), [](int rank) {
    check(runjob_init());
    if (rank == 0) return outcome_of(reduce_twice());
    check(small_allreduce("first"));
    std::exit(7);  // static destructors run while our threads do
    return Outcome();
  });
  CHECK(WIFEXITED(outcomes[1].wait_status));
  CHECK(WEXITSTATUS(outcomes[1].wait_status) == 7);
  check_lost(outcomes[0], "rank 1 on alpha");
}

TEST_CASE("a rank that never calls init is named by those that do", "[runtime][multiproc]") {
  RankOptions options = on_one_host(2);
  options.start_timeout_seconds = 1;
  const auto outcomes = run_ranks(options, [](int rank) { return outcome_of(rank == 0 ? runjob_init() : RUNJOB_OK); });
  INFO(outcomes[0].message);
  CHECK(outcomes[0].code == RUNJOB_TIMEOUT);
  CHECK_THAT(outcomes[0].message, ContainsSubstring("rank 1 on alpha"));
}
