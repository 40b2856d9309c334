#pragma once

#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <sys/socket.h>
#include <utility>
#include <vector>

#include "runtime/collectives/hierarchical/rounds/host_rounds.hpp"
#include "runtime/collectives/shm/channels.hpp"
#include "tests/runtime/collectives/shm/thread_ranks.hpp"

/// Hosts whose ranks all live in this process: each host has memory of its own, and its leader real sockets to the
/// other leaders.
namespace runjob::runtime {

/// By host, for each the channels to all hosts.
inline std::vector<std::vector<ControlChannel>> connect_all(int hosts) {
  std::vector<std::vector<ControlChannel>> channels(static_cast<std::size_t>(hosts));
  for (auto& each : channels) each.resize(static_cast<std::size_t>(hosts));
  for (std::size_t one = 0; one < channels.size(); ++one) {
    for (std::size_t other = one + 1; other < channels.size(); ++other) {
      int ends[2];
      if (::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) throw std::runtime_error("socketpair");
      channels[one][other] = ControlChannel(UniqueFd(ends[0]));
      channels[other][one] = ControlChannel(UniqueFd(ends[1]));
    }
  }
  return channels;
}

struct RoundsRank {
  RoundsRank(int rank, const std::vector<int>& hosts, const Layout& layout, void* memory,
             std::vector<ControlChannel> channels, HostRounds::Options options, std::chrono::microseconds spin)
      : topology(rank, hosts),
        local(memory, layout, group_options(topology, options.timeout)),
        board(static_cast<std::byte*>(memory) + layout.board(), topology.size()) {
    if (topology.local_rank() == 0)
      exchange = std::make_unique<LeaderExchange>(topology, local.group, board, std::move(channels), spin);
    rounds.emplace(topology, local.group, local.rounds, board, exchange.get(), options);
  }

  static GroupOptions group_options(const Topology& topology, std::chrono::milliseconds timeout) {
    GroupOptions options = options_of(topology.local_rank(), {}, timeout);
    options.names = topology.ranks(topology.host());
    return options;
  }

  const Topology topology;
  Channels local;
  const FarBoard board;
  std::unique_ptr<LeaderExchange> exchange;
  std::optional<HostRounds> rounds;
};

class RoundsHosts {
 public:
  explicit RoundsHosts(const std::vector<int>& hosts, std::chrono::milliseconds timeout = std::chrono::seconds(60),
                       std::chrono::microseconds spin = {}) {
    const Topology whole(0, hosts);
    auto channels = connect_all(whole.hosts());
    std::vector<Layout> layouts;
    for (int host = 0; host < whole.hosts(); ++host) {
      const int ranks = static_cast<int>(whole.ranks(host).size());
      layouts.emplace_back(ranks, 32 << 10, 4096, FarBoard::bytes(whole.size()));
      segments_.push_back(std::make_unique<TestSegment>(layouts.back()));
    }
    for (int rank = 0; rank < whole.size(); ++rank) {
      const auto host = static_cast<std::size_t>(whole.host_of(rank));
      ranks_.emplace_back(rank, hosts, layouts[host], segments_[host]->data(),
                          whole.local_rank_of(rank) == 0 ? std::move(channels[host]) : std::vector<ControlChannel>(),
                          HostRounds::Options{timeout}, spin);
    }
  }

  int size() const { return static_cast<int>(ranks_.size()); }
  RoundsRank& operator[](int rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  HostRounds& rounds(int rank) { return *(*this)[rank].rounds; }

  /// Runs `body(rank)` on a thread for each rank. Returns what each has thrown, by rank: "" for nothing.
  template <class Body>
  std::vector<std::string> run(Body body) {
    std::vector<std::string> errors(ranks_.size());
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size(); ++rank) {
      threads.emplace_back([&, rank] {
        try {
          body(rank);
        } catch (const std::exception& error) {
          errors[static_cast<std::size_t>(rank)] = error.what();
          for (RoundsRank& each : ranks_) {  // so that no other rank waits for ever
            each.local.group.end();
            if (each.exchange) each.exchange->close();
          }
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    return errors;
  }

 private:
  std::vector<std::unique_ptr<TestSegment>> segments_;
  std::deque<RoundsRank> ranks_;
};

}  // namespace runjob::runtime
