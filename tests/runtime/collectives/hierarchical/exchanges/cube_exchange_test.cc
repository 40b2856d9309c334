#include "runtime/collectives/hierarchical/exchanges/cube_exchange.hpp"

#include <numeric>

#include "tests/catch.hpp"
#include "tests/runtime/collectives/hierarchical/thread_hosts.hpp"

using namespace runjob::runtime;

namespace {

std::vector<int> hosts_of_one(int number) {
  std::vector<int> hosts(static_cast<std::size_t>(number));
  std::iota(hosts.begin(), hosts.end(), 0);
  return hosts;
}

CubeMember member_of(HostChannels& channels) {
  return {*channels.transport, channels.topology.host(), channels.topology.hosts()};
}

}  // namespace

TEST_CASE("leaders sum, broadcast and gather along the cube, however many there are", "[runtime][unit]") {
  const int number = GENERATE(2, 3, 4, 5, 6, 7, 8, 9);
  const auto errors = run_hosts({hosts_of_one(number), {}}, [&](HostChannels& channels) {
    const CubeMember member = member_of(channels);
    const Call call{.dtype = DType::kInt32, .count = 3};
    std::vector<std::int32_t> sum{member.host, 1, -member.host}, room(3);
    cube_allreduce(member, sum.data(), room.data(), 3, HostReduction(call, number));
    const int all = number * (number - 1) / 2;
    if (sum != std::vector<std::int32_t>{all, number, -all}) throw std::runtime_error("sum");
    for (int root = 0; root < number; ++root) {
      int value = member.host == root ? root + 100 : -1;
      cube_broadcast(member, root, &value, sizeof value);
      if (value != root + 100) throw std::runtime_error("broadcast");
    }
    // Host i has i + 1 bytes at the end, but for its last one, which stands in front.
    std::vector<std::vector<Range>> parts;
    std::size_t at = static_cast<std::size_t>(number);
    for (std::size_t host = 0; host < static_cast<std::size_t>(number); ++host) {
      parts.push_back({{host, 1}});
      if (host > 0) parts.back().push_back({at, host});
      at += host;
    }
    std::vector<std::byte> data(at), scratch(at);
    for (const Range& range : parts[static_cast<std::size_t>(member.host)])
      for (std::size_t i = 0; i < range.count; ++i) data[range.first + i] = static_cast<std::byte>(member.host + 1);
    cube_allgather(member, parts, data.data(), scratch.data());
    for (std::size_t host = 0; host < parts.size(); ++host)
      for (const Range& range : parts[host])
        for (std::size_t i = 0; i < range.count; ++i)
          if (data[range.first + i] != static_cast<std::byte>(host + 1)) throw std::runtime_error("gather");
  });
  CHECK(errors == no_errors(number));
}
