#include "runtime/collectives/hierarchical/exchanges/halving_doubling.hpp"

#include <numeric>

#include "tests/catch.hpp"
#include "tests/runtime/collectives/hierarchical/thread_hosts.hpp"

using namespace runjob::runtime;

TEST_CASE("leaders halve and double, with more and with fewer elements than hosts", "[runtime][unit]") {
  const int number = GENERATE(2, 3, 4, 5, 7, 8);
  std::vector<int> hosts(static_cast<std::size_t>(number));
  std::iota(hosts.begin(), hosts.end(), 0);
  const auto errors = run_hosts({hosts, {}}, [&](HostChannels& channels) {
    for (const std::size_t count : {1u, 2u, 3u, 7u, 8u, 1001u}) {
      const Call call{.dtype = DType::kFloat64, .count = count};
      std::vector<double> sum(count), room(count);
      for (std::size_t i = 0; i < count; ++i) sum[i] = static_cast<double>(i) + channels.topology.host();
      halve_and_double(channels, sum.data(), room.data(), count, HostReduction(call, number));
      for (std::size_t i = 0; i < count; ++i)
        if (sum[i] != static_cast<double>(i) * number + number * (number - 1) / 2) throw std::runtime_error("sum");
    }
  });
  CHECK(errors == no_errors(number));
}
