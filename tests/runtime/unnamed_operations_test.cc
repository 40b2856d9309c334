#include <string>
#include <utility>
#include <vector>

#include "tests/catch.hpp"
#include "tests/runtime/set_calls.hpp"

/// Operations without a name, through the C interface, on real ranks.

using namespace runjob::runtime;

namespace {

/// An operation without a name on one tensor.
struct Unnamed {
  runjob_operation operation{};
  runjob_tensor tensor{};
  std::int64_t extent = 0;

  Unnamed(runjob_kind kind, std::vector<float>& values, std::int32_t set = 0) {
    extent = static_cast<std::int64_t>(values.size());
    tensor = {values.data(), kind == RUNJOB_ALLGATHER ? nullptr : values.data(), 0, &extent, 1, RUNJOB_FLOAT32};
    operation.size = sizeof operation;
    operation.kind = kind;
    operation.count = 1;
    operation.tensors = &tensor;
    operation.op = RUNJOB_SUM;
    operation.prescale = operation.postscale = 1;
    operation.process_set = set;
  }
  Unnamed(const Unnamed&) = delete;
  Unnamed& operator=(const Unnamed&) = delete;
};

runjob_handle start(runjob_kind kind, std::vector<float>& values, std::int32_t set = 0) {
  const Unnamed unnamed(kind, values, set);
  runjob_handle handle = 0;
  check(runjob_submit(&unnamed.operation, &handle));
  return handle;
}

runjob_code run(runjob_kind kind, std::vector<float>& values, std::int32_t set = 0) {
  const Unnamed unnamed(kind, values, set);
  return runjob_run(&unnamed.operation, -1, nullptr);
}

std::int64_t count(std::int32_t set = 0) {
  std::int64_t number = -1;
  check(runjob_unnamed_count(set, &number));
  return number;
}

void require_mismatch(runjob_code code, const std::string& text) {
  require(code == RUNJOB_MISMATCH, std::to_string(code) + ": " + runjob_error_message());
  require(std::string(runjob_error_message()).find(text) != std::string::npos, runjob_error_message());
}

}  // namespace

TEST_CASE("operations without a name match in their order", "[runtime][multiproc]") {
  const bool blocks = GENERATE(true, false);
  run_members(on_one_host(2), [blocks](int rank) {
    for (int step = 0; step < 12; ++step) {
      std::vector<std::vector<float>> values{{1.f * static_cast<float>(rank)}, {2, 2}, {3, 3}, {4, 4}};
      std::vector<runjob_handle> handles;
      for (std::vector<float>& each : values) {
        if (blocks) check(run(RUNJOB_ALLREDUCE, each));
        if (!blocks) handles.push_back(start(RUNJOB_ALLREDUCE, each));
      }
      for (const runjob_handle handle : handles) check(finish(handle));
      require(values == std::vector<std::vector<float>>{{1}, {4, 4}, {6, 6}, {8, 8}}, "values of step");
    }
    require(count() == 48, "count");
    require(small_allreduce("named") == RUNJOB_OK && count() == 48, "a name does not count");
    std::vector<float> none;
    Unnamed refused(RUNJOB_ALLREDUCE, none);
    refused.tensor.dtype = RUNJOB_BOOL;
    refused.operation.op = RUNJOB_AVERAGE;
    runjob_handle handle = 0;
    require(runjob_submit(&refused.operation, &handle) == RUNJOB_INVALID_ARGUMENT, "refused");
    require(std::string(runjob_error_message()) == "allreduce without a name: bool values cannot be averaged",
            runjob_error_message());
    require(count() == 48, "a refused one does not count");
  });
}

TEST_CASE("a disagreement on an operation without a name ends it on all ranks", "[runtime][multiproc]") {
  const bool blocks = GENERATE(true, false);
  const int before = GENERATE(0, 5);
  run_members(on_one_host(2), [=](int rank) {
    std::vector<float> two(2, 1), three(3, 1);
    for (int i = 0; i < before; ++i) {
      check(run(RUNJOB_ALLREDUCE, two));
      check(run(RUNJOB_ALLREDUCE, three));
    }
    std::vector<float>& own = rank == 0 ? two : three;
    const std::string operation = "allreduce number " + std::to_string(2 * before + 1) + ": the ranks disagree on the ";
    require_mismatch(blocks ? run(RUNJOB_ALLREDUCE, own) : finish(start(RUNJOB_ALLREDUCE, own)),
                     operation + "shape: [2] on rank 0 (alpha); [3] on rank 1 (alpha)");
    // The next ones match again.
    require_mismatch(finish(start(rank == 0 ? RUNJOB_ALLREDUCE : RUNJOB_ALLGATHER, two)),
                     "the ranks disagree on the kind of operation: allreduce on rank 0 (alpha); allgather on rank 1");
    check(run(RUNJOB_ALLREDUCE, three));
    check(run(RUNJOB_ALLREDUCE, two));
  });
}

TEST_CASE("each process set counts its operations without a name", "[runtime][multiproc]") {
  run_members(with_sets({"alpha", "alpha", "alpha"}), [](int rank) {
    const std::int32_t pair = add_set({0, 2}), other = add_set({1, 2});
    std::vector<float> value{1}, second{1};
    for (int i = 0; i < 3; ++i) {
      runjob_handle of_pair = 0, of_other = 0;
      if (rank == 2) {  // the order between sets is free
        of_other = start(RUNJOB_ALLREDUCE, second, other);
        of_pair = start(RUNJOB_ALLREDUCE, value, pair);
      } else {
        (rank == 0 ? of_pair : of_other) = start(RUNJOB_ALLREDUCE, value, rank == 0 ? pair : other);
      }
      for (const runjob_handle handle : {of_pair, of_other}) {
        if (handle != 0) check(finish(handle));
      }
    }
    require(value[0] == 8, "sum");
    require(count(rank == 0 ? pair : other) == 3, "count of a set");
    require(count() == 0, "count of the job");
    std::int64_t number = 0;
    if (rank == 0) require(runjob_unnamed_count(other, &number) == RUNJOB_INVALID_ARGUMENT, "another's set");
    if (rank != 1) {
      std::vector<float> own(static_cast<std::size_t>(rank + 1));
      require_mismatch(finish(start(RUNJOB_ALLREDUCE, own, pair)),
                       "allreduce number 4 of process set " + std::to_string(pair) + ": the ranks disagree on");
    }
    check(barrier("before the sets end"));
  });
}

TEST_CASE("groups, barriers, broadcasts and gathers need no name", "[runtime][multiproc]") {
  run_members(on_one_host(3), [](int rank) {
    for (int step = 0; step < 4; ++step) {
      std::vector<float> a{1}, b{2, 2};
      const std::int64_t extents[] = {1, 2};
      const runjob_tensor tensors[] = {{a.data(), a.data(), 0, &extents[0], 1, RUNJOB_FLOAT32},
                                       {b.data(), b.data(), 0, &extents[1], 1, RUNJOB_FLOAT32}};
      check(runjob_grouped_allreduce(nullptr, tensors, 2, RUNJOB_SUM, 1, 1, RUNJOB_COMPRESSION_NONE, 0, -1, nullptr));
      require(a[0] == 3 && b[1] == 6, "group");
      check(runjob_barrier(nullptr, 0, -1, nullptr));
      std::vector<float> root{static_cast<float>(rank + step)};
      Unnamed copy(RUNJOB_BROADCAST, root);
      copy.operation.root = step % 3;
      check(runjob_run(&copy.operation, -1, nullptr));
      require(root[0] == static_cast<float>(step % 3 + step), "broadcast");
      std::vector<float> rows(static_cast<std::size_t>((rank + step) % 3), static_cast<float>(rank));
      const runjob_handle gathered = start(RUNJOB_ALLGATHER, rows);
      check(runjob_wait(gathered, -1));
      const std::int64_t* splits = nullptr;
      std::int32_t nsplits = 0;
      check(runjob_received_splits(gathered, &splits, &nsplits));
      require(nsplits == 3 && splits[1] == (1 + step) % 3, "the rows of each rank");
      require(take_output<float>(gathered).first.size() == 3, "allgather");
    }
    require(count() == 16, "count");
  });
}

TEST_CASE("ranks that have joined take part in operations without a name", "[runtime][multiproc]") {
  run_members(on_one_host(2), [](int rank) {
    std::vector<float> value{1};
    for (int i = 0; i < 3; ++i) check(run(RUNJOB_ALLREDUCE, value));
    require(value[0] == 8, "both");
    for (int i = 0; i < 3 && rank == 1; ++i) check(run(RUNJOB_ALLREDUCE, value));
    require(value[0] == 8, "one alone");
    runjob_handle joined = 0;
    check(runjob_join(-1, &joined));
    runjob_release(joined);
    for (int i = 0; i < 3; ++i) check(run(RUNJOB_ALLREDUCE, value));
    require(value[0] == 64, "both again");
    require(count() == (rank == 0 ? 6 : 9), "count");
  });
}
