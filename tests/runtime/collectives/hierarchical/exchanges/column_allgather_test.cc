#include "runtime/collectives/hierarchical/exchanges/column_allgather.hpp"

#include "tests/catch.hpp"
#include "tests/runtime/collectives/hierarchical/thread_hosts.hpp"

using namespace runjob::runtime;

namespace {

using Elements = std::vector<std::int32_t>;

Elements input_of(int rank, std::size_t count) {
  Elements input(count);
  for (std::size_t i = 0; i < count; ++i) input[i] = static_cast<std::int32_t>(i) + rank * 1000003;
  return input;
}

/// Runs the exchange on this rank and checks its output.
void check_exchange(HostChannels& channels, const std::vector<std::size_t>& counts) {
  Elements expected;
  for (std::size_t rank = 0; rank < counts.size(); ++rank) {
    const Elements part = input_of(static_cast<int>(rank), counts[rank]);
    expected.insert(expected.end(), part.begin(), part.end());
  }
  const int rank = channels.topology.rank();
  const Elements input = input_of(rank, counts[static_cast<std::size_t>(rank)]);
  Elements output(expected.size());
  column_allgather(channels, {.kind = Kind::kAllgather,
                              .dtype = DType::kInt32,
                              .input = input.empty() ? nullptr : input.data(),
                              .output = output.data(),
                              .count = input.size(),
                              .counts = counts});
  if (output != expected) throw std::runtime_error("counts of " + std::to_string(counts.back()));
}

}  // namespace

TEST_CASE("columns gather the inputs of hosts with as many ranks each, in whatever order", "[runtime][unit]") {
  const auto hosts = GENERATE(values<std::vector<int>>(
      {{0, 0, 1, 1}, {0, 1, 0, 1}, {0, 0, 1, 0, 1, 1}, {0, 1, 1, 2, 2, 0}, {0, 0, 1, 1, 2, 2, 3, 3}}));
  // Inputs of a few bytes, of one ring cell and a little more, and of more pieces than are on their way at once.
  const auto errors = run_hosts({hosts, {}}, [&](HostChannels& channels) {
    for (const std::size_t unit : {1u, 100u, 1024u, 1025u, 30000u}) {
      check_exchange(channels, std::vector<std::size_t>(hosts.size(), unit));
      std::vector<std::size_t> uneven;
      for (std::size_t rank = 0; rank < hosts.size(); ++rank) uneven.push_back(rank * 5 % 3 * unit);
      check_exchange(channels, uneven);
    }
  });
  CHECK(errors == no_errors(static_cast<int>(hosts.size())));
}

TEST_CASE("columns gather the input of one rank only", "[runtime][unit]") {
  const auto errors = run_hosts({{0, 0, 1, 1}, {}}, [](HostChannels& channels) {
    for (std::size_t rank = 0; rank < 4; ++rank) {
      std::vector<std::size_t> counts(4, 0);
      counts[rank] = 5000;
      check_exchange(channels, counts);
    }
  });
  CHECK(errors == no_errors(4));
}
