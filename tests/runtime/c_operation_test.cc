#include <cstddef>
#include <limits>

#include "tests/catch.hpp"
#include "tests/runtime/calls.hpp"
#include "tests/runtime/member_ranks.hpp"
#include "tests/runtime/rank_processes.hpp"

/// The two functions of the C interface that take an operation as a struct, on real ranks.

using namespace runjob::runtime;

namespace {

runjob_operation described(runjob_kind kind, const char* name, const runjob_tensor* tensors = nullptr,
                           std::int32_t count = 1) {
  runjob_operation operation{};
  operation.size = sizeof operation;
  operation.name = name;
  operation.kind = kind;
  operation.count = count;
  operation.tensors = tensors;
  operation.op = RUNJOB_SUM;
  operation.prescale = operation.postscale = 1;
  return operation;
}

/// Runs the operation by one of the two functions. Returns a handle if it has left a result.
runjob_handle run(const runjob_operation& operation, bool blocks) {
  runjob_handle handle = 0;
  if (blocks) {
    check(runjob_run(&operation, -1, &handle));
  } else {
    check(runjob_submit(&operation, &handle));
    check(runjob_wait(handle, -1));
  }
  return handle;
}

void refused(const runjob_operation* operation, const std::string& text) {
  for (const bool blocks : {false, true}) {
    runjob_handle handle = 0;
    const runjob_code code = blocks ? runjob_run(operation, -1, &handle) : runjob_submit(operation, &handle);
    require(code == RUNJOB_INVALID_ARGUMENT, "code for: " + text);
    require(std::string(runjob_error_message()).find(text) != std::string::npos, runjob_error_message());
  }
}

}  // namespace

TEST_CASE("a struct describes each kind of operation", "[runtime][multiproc]") {
  const bool blocks = GENERATE(false, true);
  run_members(on_one_host(2), [blocks](int rank) {
    const std::int64_t two = 2;
    const auto own = static_cast<float>(rank + 1);
    std::vector<float> in{own, 10 * own}, out(4);
    runjob_tensor tensor{in.data(), out.data(), 4 * sizeof(float), &two, 1, RUNJOB_FLOAT32};
    runjob_release(run(described(RUNJOB_ALLREDUCE, "sum", &tensor), blocks));
    require(out[0] == 3 && out[1] == 30, "allreduce");
    require(take_output<float>(run(described(RUNJOB_ALLGATHER, "all", &tensor), blocks)).first ==
                std::vector<float>{1, 10, 2, 20},
            "allgather");
    require(take_output<float>(run(described(RUNJOB_REDUCESCATTER, "part", &tensor), blocks)).first ==
                std::vector<float>{rank == 0 ? 3.f : 30.f},
            "reducescatter");
    const std::int64_t splits[] = {2, 0};
    runjob_operation exchange = described(RUNJOB_ALLTOALL, "exchange", &tensor);
    exchange.splits = splits;
    exchange.nsplits = 2;
    require(take_output<float>(run(exchange, blocks)).first.size() == (rank == 0 ? 4 : 0), "alltoall");
    runjob_operation copy = described(RUNJOB_BROADCAST, "copy", &tensor);
    copy.root = 1;
    out[0] = own;
    runjob_release(run(copy, blocks));
    require(out[0] == 2, "broadcast");
    runjob_release(run(described(RUNJOB_BARRIER, "meet", nullptr, 0), blocks));
    require(take_output<std::int32_t>(run(described(RUNJOB_JOIN, nullptr, nullptr, 0), blocks)).first[0] >= 0, "join");
  });
}

TEST_CASE("a struct describes a group, which may have one tensor", "[runtime][multiproc]") {
  const bool blocks = GENERATE(false, true);
  run_members(on_one_host(2), [blocks](int /*rank*/) {
    const std::int64_t one = 1;
    for (const std::int32_t count : {1, 2}) {
      std::vector<double> values{1, 2};
      const std::vector<runjob_tensor> tensors{{&values[0], &values[0], 0, &one, 1, RUNJOB_FLOAT64},
                                               {&values[1], &values[1], 0, &one, 1, RUNJOB_FLOAT64}};
      runjob_operation group = described(RUNJOB_ALLREDUCE, "group", tensors.data(), count);
      group.is_group = 1;
      runjob_release(run(group, blocks));
      require(values == (count == 1 ? std::vector<double>{2, 2} : std::vector<double>{2, 4}), "values");
      group.kind = RUNJOB_ALLGATHER;
      const runjob_handle handle = run(group, blocks);
      const void* data = nullptr;
      const std::int64_t* shape = nullptr;
      std::int32_t ndim = 0;
      check(runjob_grouped_output(handle, count - 1, &data, &shape, &ndim));
      require(ndim == 1 && shape[0] == 2, "shape");
      runjob_release(handle);
    }
  });
}

TEST_CASE("a blocking operation with a time limit leaves its handle", "[runtime][multiproc]") {
  run_members(on_one_host(2), [](int rank) {
    const runjob_operation meeting = described(RUNJOB_BARRIER, "meet", nullptr, 0);
    runjob_handle handle = 0;
    if (rank == 0) {
      require(runjob_run(&meeting, 0, &handle) == RUNJOB_IN_PROGRESS && handle != 0, "in progress");
      const runjob_operation go_on = described(RUNJOB_BARRIER, "go on", nullptr, 0);
      require(run(go_on, true) == 0, "no handle");
      check(finish(handle));
      return;
    }
    require(run(described(RUNJOB_BARRIER, "go on", nullptr, 0), true) == 0, "no handle");
    require(run(meeting, true) == 0, "no handle");
  });
}

TEST_CASE("a struct of a caller that knows no last field is read as far as it goes", "[runtime][multiproc]") {
  const auto outcome = run_alone([] {
    check(runjob_init());
    const std::int64_t one = 1;
    float value = 3;
    const runjob_tensor tensor{&value, &value, 0, &one, 1, RUNJOB_FLOAT32};
    runjob_operation operation = described(RUNJOB_ALLREDUCE, "x", &tensor);
    operation.size = offsetof(runjob_operation, stream);
    operation.stream = &operation;
    require(run(operation, true) == 0 && value == 3, "value");
    operation.size = sizeof operation + 64;  // a later version's
    require(run(operation, true) == 0 && value == 3, "value");
    return outcome_of(runjob_shutdown());
  });
  INFO(outcome.message);
  CHECK(outcome.ok());
}

TEST_CASE("a struct that describes no operation is refused at once, with the reason", "[runtime][multiproc]") {
  const auto outcome = run_alone([] {
    check(runjob_init());
    const std::int64_t two = 2;
    float values[2] = {};
    runjob_tensor tensor{values, values, 0, &two, 1, RUNJOB_FLOAT32};
    const auto with = [&](auto change) {
      runjob_operation operation = described(RUNJOB_ALLREDUCE, "x", &tensor);
      change(operation);
      return operation;
    };
    const auto refuse = [&](const std::string& text, auto change) {
      const runjob_operation operation = with(change);
      refused(&operation, text);
    };
    refused(nullptr, "whose `size` is its size");
    refuse("whose `size` is its size", [](auto& each) { each.size = 8; });
    refuse("4 is not a kind of operation", [](auto& each) { each.kind = 4; });
    refuse("allreduce without a name: 0 tensors", [](auto& each) { each.name = nullptr, each.count = 0; });
    refuse("6 is not a reduction", [](auto& each) { each.op = 6; });
    refuse("9 is not a compression", [](auto& each) { each.compression = 9; });
    refuse("7 is not a kind of memory", [](auto& each) { each.memory = 7; });
    refuse("allreduce 'x': 0 tensors", [](auto& each) { each.count = 0; });
    refuse("allreduce 'x': a group of -1 tensors", [](auto& each) { each.is_group = 1, each.count = -1; });
    refuse("alltoall 'x': the splits are empty", [&](auto& each) { each.kind = RUNJOB_ALLTOALL, each.splits = &two; });
    tensor.dtype = 11;
    refuse("11 is not a dtype", [](auto&) {});
    tensor.dtype = RUNJOB_FLOAT32;
    tensor.output = nullptr;
    refuse("broadcast 'x': the buffer is null", [](auto& each) { each.kind = RUNJOB_BROADCAST; });
    const runjob_operation meeting = with([](auto& each) { each.kind = RUNJOB_BARRIER; });
    require(runjob_submit(&meeting, nullptr) == RUNJOB_INVALID_ARGUMENT, "no handle");
    require(runjob_run(&meeting, 1, nullptr) == RUNJOB_INVALID_ARGUMENT, "no handle");
    check(runjob_run(&meeting, -1, nullptr));
    runjob_handle handle = 0;
    require(runjob_run(&meeting, std::numeric_limits<double>::quiet_NaN(), &handle) == RUNJOB_INVALID_ARGUMENT, "NaN");
    return outcome_of(runjob_shutdown());
  });
  INFO(outcome.message);
  CHECK(outcome.ok());
}
