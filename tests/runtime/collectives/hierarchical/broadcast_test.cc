#include "runtime/collectives/hierarchical/broadcast.hpp"

#include "tests/catch.hpp"
#include "tests/runtime/collectives/hierarchical/host_inputs.hpp"
#include "tests/runtime/collectives/hierarchical/thread_hosts.hpp"

using namespace runjob::runtime;

TEST_CASE("between hosts: every rank gets any root's buffer", "[runtime][unit]") {
  for (const std::vector<int>& hosts : topologies()) {
    const int size = static_cast<int>(hosts.size()), columns = Topology(0, hosts).columns();
    for (const int used : {1, columns}) {
      const auto errors = run_hosts({hosts, with_columns(used)}, [&](HostChannels& channels) {
        for (int root = 0; root < size; ++root) {
          for (const std::size_t count : {1u, 57u, 4096u, 4097u, 100001u}) {
            Bytes data = exact_input(DType::kUint8, count, channels.topology.rank() == root ? root : 99);
            broadcast(channels, {.dtype = DType::kUint8, .root = root, .output = data.data(), .count = count});
            if (data != exact_input(DType::kUint8, count, root))
              throw std::runtime_error("root " + std::to_string(root));
          }
        }
      });
      CHECK(errors == no_errors(size));
    }
  }
}
