#pragma once

#include <algorithm>
#include <array>
#include <memory>

#include "runtime/collectives/hierarchical/exchanges/link_costs.hpp"
#include "runtime/collectives/hierarchical/exchanges/topology.hpp"
#include "runtime/collectives/shm/channels.hpp"
#include "runtime/collectives/transport.hpp"

namespace runjob::runtime {

/// Memory for sums and messages on their way, kept from one collective to the next. It may have any contents.
class Scratch {
 public:
  std::byte* reserve(std::size_t bytes) {
    if (bytes > bytes_) memory_ = std::make_unique_for_overwrite<std::byte[]>(bytes_ = bytes);
    return memory_.get();
  }

 private:
  std::unique_ptr<std::byte[]> memory_;
  std::size_t bytes_ = 0;
};

/// The connections of one rank: to the ranks of its host through shared memory, and to its column on the other hosts.
/// The collectives beside this file take it as an argument. All throw the errors of Group and Transport, and may then
/// leave any contents in the output.
/// Threads  one at a time.
struct HostChannels {
  const Topology& topology;
  Channels& local;
  Transport* transport = nullptr;  ///< null for a rank whose column does not reach all hosts
  LinkCosts costs = {};
  std::uint64_t operations = 0;  ///< the number of those with long messages so far, the same on all ranks
  Scratch sums = {}, messages = {};

  bool is_leader() const { return topology.local_rank() == 0; }
  bool is_alone_on_host() const { return topology.local_size() == 1; }
  /// True when each host has one rank, so that a rank's messages need not go through its host's memory.
  bool are_all_alone() const { return topology.size() == topology.hosts(); }
  int right() const { return (topology.host() + 1) % topology.hosts(); }
  int left() const { return (topology.host() + topology.hosts() - 1) % topology.hosts(); }
  /// The largest tensor whose sums are a short message whatever its dtype.
  std::size_t most_short() const { return std::min(local.small.most_bytes(), Transport::kMostShortBytes / 2); }
  /// The first tag of the next collective with long messages, which may use 2^32 tags from it on.
  std::uint64_t next_tags() { return ++operations << 32; }
};

/// Buffers over one piece of memory, used in turn, so that several messages are on their way.
class Lanes {
 public:
  static constexpr std::size_t kNumber = 8;

  Lanes(Transport& transport, void* data, std::size_t bytes) {
    for (auto& lane : lanes_) lane = transport.buffer(data, bytes);
  }
  TransportBuffer& operator[](std::size_t i) { return *lanes_[i % kNumber]; }
  void wait_all_sent() {
    for (auto& lane : lanes_) lane->wait_sent().throw_if_failed();
  }

 private:
  std::array<std::unique_ptr<TransportBuffer>, kNumber> lanes_;
};

}  // namespace runjob::runtime
