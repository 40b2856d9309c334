#include "runtime/collectives/hierarchical/exchanges/tree_reduction.hpp"

#include <cstring>
#include <random>

#include "runtime/collectives/hierarchical/allreduce.hpp"
#include "tests/catch.hpp"
#include "tests/runtime/collectives/hierarchical/thread_hosts.hpp"

using namespace runjob::runtime;

TEST_CASE("sums of messages have the bits of an allreduce between hosts", "[runtime][unit]") {
  ThreadHosts hosts;
  hosts.host_of_rank = GENERATE(std::vector<int>{0, 1}, std::vector<int>{0, 0, 1, 1, 1},
                                std::vector<int>{0, 1, 0, 2, 1}, std::vector<int>{0, 1, 2, 3, 4, 5, 6, 6});
  const DType dtype = GENERATE(DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBfloat16);
  const ReduceOp op = GENERATE(ReduceOp::kSum, ReduceOp::kAverage, ReduceOp::kProduct);
  constexpr std::size_t kCount = 301;
  const std::size_t bytes = kCount * size_of(dtype);
  std::vector<std::vector<std::byte>> inputs(hosts.host_of_rank.size());
  std::mt19937 random(1);
  for (auto& input : inputs) {
    for (std::size_t i = 0; i < kCount; ++i) {
      const float value = 0.5f + static_cast<float>(random() % 1000) / 999.0f;
      const double wide = value;
      std::uint32_t bits = 0;
      std::memcpy(&bits, &value, sizeof bits);
      const auto half = static_cast<std::uint16_t>(dtype == DType::kBfloat16 ? bits >> 16 : 0x3800 + random() % 0x400);
      const void* element = dtype == DType::kFloat64   ? static_cast<const void*>(&wide)
                            : dtype == DType::kFloat32 ? static_cast<const void*>(&value)
                                                       : &half;
      const auto* raw = static_cast<const std::byte*>(element);
      input.insert(input.end(), raw, raw + size_of(dtype));
    }
  }
  const Call call{
      .kind = Kind::kAllreduce, .dtype = dtype, .op = op, .prescale = 0.75, .postscale = 1.5, .count = kCount};
  std::vector<std::vector<std::byte>> outputs(inputs.size(), std::vector<std::byte>(bytes));
  const auto errors = run_hosts(hosts, [&](HostChannels& channels) {
    const auto rank = static_cast<std::size_t>(channels.topology.rank());
    Call own = call;
    own.input = inputs[rank].data();
    own.output = outputs[rank].data();
    allreduce(channels, own, AllreduceWay::kDoubling);
  });
  CHECK(errors == no_errors(static_cast<int>(inputs.size())));
  std::vector<const void*> pointers;
  for (const auto& input : inputs) pointers.push_back(input.data());
  std::vector<std::byte> sum(bytes);
  Call own = call;
  own.output = sum.data();
  tree_reduce(Topology(0, hosts.host_of_rank), own, pointers, kCount);
  for (const auto& output : outputs) CHECK(output == sum);
}
