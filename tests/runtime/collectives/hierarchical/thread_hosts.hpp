#pragma once

#include <functional>

#include "runtime/collectives/hierarchical/exchanges/host_channels.hpp"
#include "tests/runtime/collectives/hierarchical/thread_transport.hpp"
#include "tests/runtime/collectives/shm/thread_ranks.hpp"

/// Hosts as groups of threads of this process: each group shares memory, and columns share a ThreadNetwork.
namespace runjob::runtime {

/// Nothing that tests look at depends on the times.
inline LinkCosts with_columns(int columns) {
  LinkCosts costs;
  costs.columns = columns;
  return costs;
}

struct ThreadHosts {
  std::vector<int> host_of_rank;
  LinkCosts costs;
  std::size_t cell_bytes = 4096, slot_bytes = 4096;  ///< small, so that a few thousand elements go round several times
};

/// Runs `body` on a thread for each rank. Returns what each has thrown, by rank: "" for nothing.
inline std::vector<std::string> run_hosts(const ThreadHosts& hosts, const std::function<void(HostChannels&)>& body) {
  const int size = static_cast<int>(hosts.host_of_rank.size());
  const Topology whole(0, hosts.host_of_rank);
  std::vector<std::unique_ptr<TestSegment>> segments;
  for (int host = 0; host < whole.hosts(); ++host) {
    const Layout layout(static_cast<int>(whole.ranks(host).size()), hosts.cell_bytes, hosts.slot_bytes);
    segments.push_back(std::make_unique<TestSegment>(layout));
  }
  std::vector<ThreadNetwork> networks(static_cast<std::size_t>(whole.columns()));
  std::vector<std::string> errors(static_cast<std::size_t>(size));
  const auto run_rank = [&](int rank) {
    const Topology topology(rank, hosts.host_of_rank);
    const Layout layout(topology.local_size(), hosts.cell_bytes, hosts.slot_bytes);
    Channels local(segments[static_cast<std::size_t>(topology.host())]->data(), layout,
                   options_of(topology.local_rank()));
    std::optional<ThreadTransport> transport;
    if (topology.local_rank() < topology.columns())
      transport.emplace(networks[static_cast<std::size_t>(topology.local_rank())], topology.host());
    HostChannels channels{topology, local, transport ? &*transport : nullptr, hosts.costs};
    try {
      body(channels);
    } catch (const std::exception& error) {
      errors[static_cast<std::size_t>(rank)] = error.what();
      local.group.end();  // as the backend does, so that no other rank waits for ever
      for (ThreadNetwork& network : networks) network.end();
    }
  };
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) threads.emplace_back(run_rank, rank);
  for (std::thread& thread : threads) thread.join();
  return errors;
}

}  // namespace runjob::runtime
