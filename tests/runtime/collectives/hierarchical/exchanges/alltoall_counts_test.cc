#include "runtime/collectives/hierarchical/exchanges/alltoall_counts.hpp"

#include "tests/catch.hpp"
#include "tests/runtime/collectives/hierarchical/thread_hosts.hpp"

using namespace runjob::runtime;

TEST_CASE("parts in bytes follow each other", "[runtime][unit]") {
  const ByteCounts parts = bytes_of({3, 0, 2}, 4);
  CHECK(parts == ByteCounts{12, 0, 8});
  CHECK(offsets_of(parts) == ByteCounts{0, 12, 12});
  CHECK(offsets_of({}).empty());
}

TEST_CASE("the ranks of a host know what each of them sends and receives", "[runtime][unit]") {
  // With the small ring cells the tables of 600 ranks go in several pieces.
  const int size = 600;
  const auto errors = run_hosts({{0, 0, 0}, {}}, [&](HostChannels& channels) {
    const auto own = static_cast<std::size_t>(channels.topology.rank());
    Call call{.kind = Kind::kAlltoall, .dtype = DType::kInt32};
    for (std::size_t peer = 0; peer < size; ++peer) {
      call.send_counts.push_back(1000 * own + peer);
      call.counts.push_back(7000 * own + peer);
    }
    const AlltoallCounts counts(channels.local.ring, call);
    for (int local = 0; local < 3; ++local) {
      for (const int peer : {0, 1, 511, 512, size - 1}) {
        const auto from = static_cast<std::size_t>(local), to = static_cast<std::size_t>(peer);
        if (counts.sent(local, peer) != 4 * (1000 * from + to)) throw std::runtime_error("sent");
        if (counts.received(local, peer) != 4 * (7000 * from + to)) throw std::runtime_error("received");
      }
    }
  });
  CHECK(errors == no_errors(3));
}

TEST_CASE("equal parts are known without an exchange", "[runtime][unit]") {
  const auto errors = run_hosts({{0, 0}, {}}, [&](HostChannels& channels) {
    if (channels.topology.rank() == 1) return;  // the other one waits for nothing
    Call call{.kind = Kind::kAlltoall, .dtype = DType::kInt32};
    call.send_counts = call.counts = {5, 5};
    call.largest_part = 5;
    call.has_equal_parts = true;
    const AlltoallCounts counts(channels.local.ring, call);
    if (counts.sent(1, 0) != 20 || counts.received(0, 1) != 20) throw std::runtime_error("wrong bytes");
  });
  CHECK(errors == no_errors(2));
}
