#include "runtime/collectives/hierarchical/broadcast.hpp"

#include <set>

#include "tests/catch.hpp"
#include "tests/runtime/collectives/hierarchical/host_inputs.hpp"
#include "tests/runtime/collectives/hierarchical/thread_hosts.hpp"

using namespace runjob::runtime;

TEST_CASE("between hosts: every rank gets any root's buffer", "[runtime][unit]") {
  constexpr int kMost = 100001;
  for (const std::vector<int>& hosts : topologies()) {
    const int size = static_cast<int>(hosts.size());
    std::vector<Bytes> buffers;
    for (int root = 0; root < size; ++root) buffers.push_back(exact_input(DType::kUint8, kMost, root));
    for (const int used : std::set{1, Topology(0, hosts).columns()}) {
      const auto errors = run_hosts({hosts, with_columns(used)}, [&](HostChannels& channels) {
        for (int root = 0; root < size; ++root) {
          for (const int bytes : {1, 57, 4096, 4097, kMost}) {
            const Bytes& buffer = buffers[static_cast<std::size_t>(root)];
            const Bytes expected(buffer.begin(), buffer.begin() + bytes);
            Bytes data = channels.topology.rank() == root ? expected : Bytes(expected.size());
            broadcast(channels, {.dtype = DType::kUint8, .root = root, .output = data.data(), .count = data.size()});
            if (data != expected) throw std::runtime_error("root " + std::to_string(root));
          }
        }
      });
      CHECK(errors == no_errors(size));
    }
  }
}
