#include "runtime/collectives/hierarchical/allreduce.hpp"

#include <numeric>

#include "tests/catch.hpp"
#include "tests/runtime/collectives/hierarchical/host_inputs.hpp"
#include "tests/runtime/collectives/hierarchical/thread_hosts.hpp"

using namespace runjob::runtime;

namespace {

constexpr AllreduceWay kWays[] = {AllreduceWay::kDoubling, AllreduceWay::kHalving, AllreduceWay::kRing};

Bytes run_one(HostChannels& channels, Call call, AllreduceWay way, bool in_place) {
  const Bytes input = exact_input(call.dtype, call.count, channels.topology.rank());
  Bytes output = in_place ? input : Bytes(input.size());
  call.input = in_place ? output.data() : input.data();
  call.output = output.data();
  const bool is_short = input.size() <= channels.most_short();
  allreduce(channels, call, way == AllreduceWay::kDoubling && !is_short ? AllreduceWay::kHalving : way);
  return output;
}

/// Every rank's result of every call has the bits of the reduction in rank order, in place and not.
void check_calls(const ThreadHosts& hosts, AllreduceWay way, const std::vector<Call>& calls) {
  const int size = static_cast<int>(hosts.host_of_rank.size());
  std::vector<Bytes> expected;
  for (const Call& call : calls) expected.push_back(reduced(call, size));
  const auto errors = run_hosts(hosts, [&](HostChannels& channels) {
    for (std::size_t i = 0; i < calls.size(); ++i) {
      for (const bool in_place : {false, true}) {
        if (run_one(channels, calls[i], way, in_place) == expected[i]) continue;
        throw std::runtime_error(std::string(to_string(calls[i].dtype)) + " " + std::string(to_string(calls[i].op)) +
                                 " " + std::to_string(calls[i].count));
      }
    }
  });
  CHECK(errors == no_errors(size));
}

}  // namespace

TEST_CASE("between hosts: every reduction of each size of element and every dtype, each way", "[runtime][unit]") {
  const AllreduceWay way = GENERATE(from_range(std::begin(kWays), std::end(kWays)));
  const int columns = GENERATE(1, 2);
  const std::vector<int> hosts = columns == 2 ? std::vector<int>{0, 0, 1, 1, 1, 2, 2} : std::vector<int>{0, 0, 0, 1, 2};
  check_calls({hosts, with_columns(columns)}, way, reductions({1, 17, 500, 4097}));
}

TEST_CASE("between hosts: every topology, each way, of all sizes", "[runtime][unit]") {
  const AllreduceWay way = GENERATE(from_range(std::begin(kWays), std::end(kWays)));
  std::vector<Call> calls;
  for (const DType dtype : {DType::kUint8, DType::kFloat16, DType::kInt64}) {
    for (const std::size_t count : {1, 2, 65, 511, 4095, 20011})
      calls.push_back({.kind = Kind::kAllreduce, .dtype = dtype, .count = count});
  }
  for (const std::vector<int>& hosts : topologies()) {
    const int columns = Topology(0, hosts).columns();
    check_calls({hosts, with_columns(1)}, way, calls);
    if (columns > 1) check_calls({hosts, with_columns(columns)}, way, calls);
  }
}

TEST_CASE("between hosts: two lone ranks exchange every reduction and dtype directly, in several pieces too",
          "[runtime][unit]") {
  std::vector<Call> calls = reductions({1, 17, 4097});
  for (const std::size_t count : {32768, 300000}) calls.push_back({.dtype = DType::kFloat32, .count = count});
  calls.push_back({.dtype = DType::kFloat16, .count = 700001});
  calls.push_back({.dtype = DType::kBfloat16, .op = ReduceOp::kSum, .prescale = 0.5, .postscale = 4, .count = 3000});
  calls.push_back({.dtype = DType::kFloat64, .op = ReduceOp::kAverage, .prescale = 2, .count = 300});
  check_calls({{0, 1}, with_columns(1)}, AllreduceWay::kExchange, calls);
}

TEST_CASE("between hosts: scaling is part of the reduction", "[runtime][unit]") {
  const AllreduceWay way = GENERATE(from_range(std::begin(kWays), std::end(kWays)));
  std::vector<Call> calls;
  for (const DType dtype : {DType::kFloat32, DType::kBfloat16, DType::kFloat64, DType::kInt32}) {
    calls.push_back({.dtype = dtype, .op = ReduceOp::kSum, .prescale = 0.5, .postscale = 4, .count = 3000});
    calls.push_back({.dtype = dtype, .op = ReduceOp::kAverage, .prescale = 2, .count = 300});
  }
  calls[6].prescale = calls[7].prescale = 1;  // of integers, a half is not exact
  calls[6].op = ReduceOp::kMax;
  check_calls({{0, 0, 1, 2, 2}, with_columns(1)}, way, calls);
}

TEST_CASE("between hosts: averages of short integers do not wrap on the way, also of several pieces",
          "[runtime][unit]") {
  const AllreduceWay way = GENERATE(AllreduceWay::kHalving, AllreduceWay::kRing);
  std::vector<Call> calls;
  for (const DType dtype : {DType::kUint8, DType::kInt8, DType::kUint16, DType::kInt16}) {
    calls.push_back({.dtype = dtype, .op = ReduceOp::kAverage, .count = 100000});
    calls.push_back({.dtype = dtype, .op = ReduceOp::kSum, .postscale = 0.25, .count = 3000});
    calls.push_back({.dtype = dtype, .op = ReduceOp::kAverage, .prescale = 2, .postscale = 3, .count = 300});
  }
  if (way == AllreduceWay::kRing)  // which gives such a call to the leaders in pieces of at most 4 Mi elements
    calls.push_back({.dtype = DType::kUint8, .op = ReduceOp::kAverage, .count = (4u << 20) + 3});
  check_calls({{0, 0, 1, 2, 2}, with_columns(1)}, way, calls);
}

TEST_CASE("between hosts: sums have the same bits on all ranks and again", "[runtime][unit]") {
  const AllreduceWay way = GENERATE(from_range(std::begin(kWays), std::end(kWays)));
  const std::size_t count = way == AllreduceWay::kDoubling ? 700 : 30011;
  std::vector<std::vector<float>> sums(7), again(7);
  const auto errors = run_hosts({{0, 0, 1, 1, 2, 2, 2}, with_columns(2)}, [&](HostChannels& channels) {
    const auto rank = static_cast<std::size_t>(channels.topology.rank());
    std::vector<float> input(count);
    for (std::size_t i = 0; i < count; ++i) input[i] = 1.0F / static_cast<float>(1 + (i * 7 + rank * 131) % 1013);
    for (auto* results : {&sums, &again}) {
      (*results)[rank].resize(count);
      allreduce(channels,
                {.dtype = DType::kFloat32, .input = input.data(), .output = (*results)[rank].data(), .count = count},
                way);
    }
  });
  CHECK(errors == no_errors(7));
  for (std::size_t rank = 0; rank < 7; ++rank) {
    CHECK(sums[rank] == sums[0]);
    CHECK(again[rank] == sums[0]);
  }
  for (std::size_t i = 0; i < count; i += 97) {
    double exact = 0;
    for (std::size_t rank = 0; rank < 7; ++rank) exact += 1.0 / static_cast<double>(1 + (i * 7 + rank * 131) % 1013);
    CHECK(sums[0][i] == Approx(exact).epsilon(7 * 6e-8));
  }
}

TEST_CASE("between hosts: doubling and halving give the same bits, so that it does not matter which is cheaper",
          "[runtime][unit]") {
  const auto errors = run_hosts({{0, 1, 2, 2, 3, 4, 5, 6, 7, 8, 9}, with_columns(1)}, [&](HostChannels& channels) {
    std::vector<float> input(999), doubled(999), halved(999);
    for (std::size_t i = 0; i < 999; ++i)
      input[i] =
          1.0F / static_cast<float>(1 + (i * 7 + static_cast<std::size_t>(channels.topology.rank()) * 131) % 1013);
    Call call{.dtype = DType::kFloat32, .input = input.data(), .output = doubled.data(), .count = 999};
    allreduce(channels, call, AllreduceWay::kDoubling);
    call.output = halved.data();
    allreduce(channels, call, AllreduceWay::kHalving);
    if (doubled != halved) throw std::runtime_error("other bits");
  });
  CHECK(errors == no_errors(11));
}

TEST_CASE("between hosts: an allreduce tells the way it goes", "[runtime][unit]") {
  using Case = std::pair<AllreduceWay, std::string>;
  const auto [way, name] = GENERATE(Case{AllreduceWay::kDoubling, "HOSTS_ALLREDUCE_DOUBLING"},
                                    Case{AllreduceWay::kHalving, "HOSTS_ALLREDUCE_HALVING"},
                                    Case{AllreduceWay::kExchange, "HOSTS_ALLREDUCE_EXCHANGE"},
                                    Case{AllreduceWay::kRing, "HOSTS_ALLREDUCE_RING"});
  std::string stage;
  const auto errors = run_hosts({{0, 1}, with_columns(1)}, [&](HostChannels& channels) {
    float value = 1;
    Call call{.dtype = DType::kFloat32, .input = &value, .output = &value, .count = 1};
    if (channels.is_leader() && channels.topology.rank() == 0)
      call.on_stage = [&](const char* text, const char*) { stage = text; };
    allreduce(channels, call, way);
  });
  CHECK(errors == no_errors(2));
  CHECK(stage == name);
}

TEST_CASE("between hosts: reducescatter leaves every rank its part, small and large, uneven and empty",
          "[runtime][unit]") {
  const int columns = GENERATE(1, 2);
  for (const std::vector<int>& hosts : topologies()) {
    const int size = static_cast<int>(hosts.size());
    if (columns > Topology(0, hosts).columns()) continue;
    std::vector<std::vector<std::size_t>> splits;
    for (const std::size_t unit : {1u, 100u, 3001u}) {
      std::vector<std::size_t> counts;
      for (int rank = 0; rank < size; ++rank) counts.push_back(static_cast<std::size_t>(rank * 5 % 3) * unit);
      counts.back() += 7;
      splits.push_back(counts);
    }
    const auto errors = run_hosts({hosts, with_columns(columns)}, [&](HostChannels& channels) {
      const auto rank = static_cast<std::size_t>(channels.topology.rank());
      for (const auto& counts : splits) {
        for (const DType dtype : {DType::kInt8, DType::kBfloat16, DType::kFloat32}) {
          const std::size_t count = std::accumulate(counts.begin(), counts.end(), std::size_t{0});
          Call call{.kind = Kind::kReducescatter, .dtype = dtype, .op = ReduceOp::kAverage, .count = count};
          const Bytes input = exact_input(dtype, count, channels.topology.rank()), whole = reduced(call, size);
          Bytes output(counts[rank] * size_of(dtype));
          call.input = input.data();
          call.output = output.data();
          call.counts = counts;
          reducescatter(channels, call);
          const auto first = static_cast<std::ptrdiff_t>(
              std::accumulate(counts.begin(), counts.begin() + channels.topology.rank(), std::size_t{0}) *
              size_of(dtype));
          if (!std::equal(output.begin(), output.end(), whole.begin() + first)) throw std::runtime_error("wrong part");
        }
      }
    });
    CHECK(errors == no_errors(size));
  }
}
