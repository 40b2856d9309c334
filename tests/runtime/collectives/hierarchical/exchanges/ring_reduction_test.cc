#include "runtime/collectives/hierarchical/exchanges/ring_reduction.hpp"

#include "tests/catch.hpp"
#include "tests/runtime/collectives/hierarchical/host_inputs.hpp"
#include "tests/runtime/collectives/hierarchical/thread_hosts.hpp"

using namespace runjob::runtime;

// allreduce_test.cc has the dtypes and the topologies.

TEST_CASE("round the ring: many items of real sizes, one operation after the other", "[runtime][unit]") {
  ThreadHosts hosts{{0, 0, 1, 1, 2, 2}, with_columns(GENERATE(1, 2))};
  hosts.cell_bytes = 16u << 10;
  hosts.slot_bytes = 256u << 10;
  const Call call{.dtype = DType::kInt32, .op = ReduceOp::kSum, .count = 600001};
  const Bytes expected = reduced(call, 6);
  const auto errors = run_hosts(hosts, [&](HostChannels& channels) {
    const Bytes input = exact_input(call.dtype, call.count, channels.topology.rank());
    for (int i = 0; i < 3; ++i) {
      Bytes output(input.size());
      Call own = call;
      own.input = input.data();
      own.output = output.data();
      ring_allreduce(channels, own);
      if (output != expected) throw std::runtime_error("sum");
    }
  });
  CHECK(errors == no_errors(6));
}

TEST_CASE("round the ring: no output changes before the last rank has come", "[runtime][unit]") {
  // The last rank ends the exchange instead of taking part.
  std::vector<char> is_untouched(4);  // not bool: each rank writes its own
  const auto errors = run_hosts({{0, 0, 1, 1}, with_columns(2)}, [&](HostChannels& channels) {
    const int rank = channels.topology.rank();
    if (rank == 3) throw std::runtime_error("leaves");
    Bytes data = exact_input(DType::kInt32, 50000, rank);
    try {
      ring_allreduce(channels, {.dtype = DType::kInt32, .input = data.data(), .output = data.data(), .count = 50000});
    } catch (const std::exception&) {
      is_untouched[static_cast<std::size_t>(rank)] = data == exact_input(DType::kInt32, 50000, rank);
      throw;
    }
  });
  for (std::size_t rank = 0; rank < 3; ++rank) {
    CHECK_FALSE(errors[rank].empty());
    CHECK(is_untouched[rank]);
  }
}
