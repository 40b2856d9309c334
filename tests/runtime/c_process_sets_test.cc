#include "tests/catch.hpp"
#include "tests/runtime/set_calls.hpp"

using namespace runjob::runtime;

namespace {

void refused(runjob_code code, const std::string& text) {
  require(code == RUNJOB_INVALID_ARGUMENT, "the code is " + std::to_string(code));
  require(std::string(runjob_error_message()).find(text) != std::string::npos, runjob_error_message());
}

runjob_code add(const Ranks& ranks) {
  std::int32_t id = 0;
  return runjob_process_set_add(ranks.data(), static_cast<std::int32_t>(ranks.size()), &id);
}

}  // namespace

TEST_CASE("ranks that cannot be a process set are refused on all ranks", "[runtime][multiproc]") {
  check_all_ok(run_ranks(with_sets({"alpha", "alpha", "beta"}), [](int) {
    check(runjob_init());
    check(add({2, 0}));
    refused(add({}), "a process set needs at least one rank");
    refused(add({0, 3}), "process set [0, 3]: the job of 3 ranks has no rank 3");
    refused(add({-1}), "has no rank -1");
    refused(add({1, 0, 1}), "process set [0, 1, 1]: rank 1 is in it twice");
    refused(add({0, 2}), "process set [0, 2]: a set of these ranks already exists, process set 1");
    refused(add({0, 1, 2}), "a set of these ranks already exists, process set 0");
    refused(runjob_process_set_add(nullptr, 1, nullptr), "");
    refused(runjob_process_set_remove(0), "process set 0 is the whole job");
    refused(runjob_process_set_remove(7), "process set 7 does not exist");
    require(all_sets() == Ranks{0, 1}, "sets");
    return outcome_of(runjob_shutdown());
  }));
}

TEST_CASE("operations name what is wrong with their set", "[runtime][multiproc]") {
  check_all_ok(run_ranks(with_sets({"alpha", "alpha", "beta"}), [](int rank) {
    check(runjob_init());
    const std::int32_t set = add_set({0, 2});
    float value = 0;
    const std::int64_t one = 1;
    runjob_handle handle = 0;
    refused(sum(5, "x", value), "allreduce 'x': process set 5 does not exist");
    refused(runjob_barrier_async("x", -1, &handle), "barrier 'x': process set -1 does not exist");
    if (rank == 1) {
      refused(sum(set, "x", value), "allreduce 'x': rank 1 on alpha is not in process set 1, whose ranks are [0, 2]");
    } else {
      refused(runjob_broadcast_async("x", &value, &one, 1, RUNJOB_FLOAT32, 1, set, &handle),
              "broadcast 'x': root rank 1 is not in process set 1");
      refused(runjob_alltoall_async("x", &value, nullptr, 0, &one, 1, nullptr, 0, RUNJOB_FLOAT32, set, &handle),
              "1 rows cannot be split evenly among 2 ranks");
    }
    return outcome_of(runjob_shutdown());
  }));
}

TEST_CASE("every rank knows all sets and its place in them", "[runtime][multiproc]") {
  check_all_ok(run_ranks(with_sets({"alpha", "alpha", "beta"}), [](int rank) {
    require(runjob_process_set_size(0) == -1 && runjob_process_set_rank(0) == -1, "before init");
    check(runjob_init());
    const std::int32_t set = add_set({2, 1});
    require(runjob_process_set_size(0) == 3 && runjob_process_set_rank(0) == rank, "the whole job");
    require(runjob_process_set_size(set) == 2 && runjob_process_set_rank(set) == rank - 1, "the set");
    require(runjob_process_set_size(set + 1) == -1 && runjob_process_set_rank(set + 1) == -1, "no set");
    require(ranks_of(0) == Ranks{0, 1, 2} && ranks_of(set) == Ranks{1, 2}, "ranks");
    std::int32_t count = 0;
    refused(runjob_process_set_ranks(9, nullptr, 0, &count), "process set 9 does not exist");
    refused(runjob_process_set_ids(nullptr, 1, &count), "a list needs somewhere to be put");
    return outcome_of(runjob_shutdown());
  }));
}

TEST_CASE("sets change after init() only when that was asked for", "[runtime][multiproc]") {
  const Outcome refusal = run_alone([] {
    check(runjob_init());
    return outcome_of(add({0}));
  });
  CHECK(refusal.code == RUNJOB_INVALID_ARGUMENT);
  CHECK_THAT(refusal.message, ContainsSubstring("RUNJOB_DYNAMIC_PROCESS_SETS=1"));
  const Outcome allowed = run_alone([] {
    check(runjob_init_with_process_sets(nullptr, nullptr, 0, 1));
    return outcome_of(add({0}));
  });
  CHECK_THAT(allowed.message, ContainsSubstring("a set of these ranks already exists, process set 0"));
}

TEST_CASE("a set that init() cannot add is an error, and the job is there with the others", "[runtime][multiproc]") {
  check_all_ok(run_ranks(on_one_host(3), [](int) {
    const std::int32_t ranks[] = {0, 1, 1, 0, 2}, sizes[] = {2, 2, 1};
    refused(runjob_init_with_process_sets(ranks, sizes, 3, 0), "a set of these ranks already exists, process set 1");
    require(runjob_is_initialized() == 1 && all_sets() == Ranks{0, 1, 2}, "the others");
    check(small_allreduce("x"));
    return outcome_of(runjob_shutdown());
  }));
}
