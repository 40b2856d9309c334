#include "runtime/collectives/hierarchical/link_measurement.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>

#include "runtime/collectives/copy_bytes.hpp"
#include "runtime/collectives/hierarchical/exchanges/cube_exchange.hpp"

namespace runjob::runtime {
namespace {

/// The most streams between two hosts that can be of use: one alone fills 10 to 25 Gbit/s.
constexpr int kMostColumns = 8;

/// The shortest of several times: that in which nothing else came in between.
double shortest(int times, const std::function<void()>& run) {
  using Clock = std::chrono::steady_clock;
  double least = 1e9;
  for (int i = 0; i < times; ++i) {
    const Clock::time_point start = Clock::now();
    run();
    least = std::min(least, std::chrono::duration<double>(Clock::now() - start).count());
  }
  return std::max(least, 1e-7);
}

class Measurement {
 public:
  explicit Measurement(HostChannels& channels)
      : channels_(channels),
        member_{*channels.transport, channels.topology.host(), channels.topology.hosts()},
        incoming_(channels.messages.reserve(kLongBytes)),
        outgoing_(channels.sums.reserve(kLongBytes)),
        arrivals_(channels.transport->buffer(incoming_, kLongBytes)),
        departures_(channels.transport->buffer(outgoing_, kLongBytes)),
        tag_(channels.next_tags()) {
    std::memset(outgoing_, 0, kLongBytes);
    std::memset(incoming_, 0, kLongBytes);
  }

  LinkCosts run() {
    constexpr int kShortTimes = 12, kLongTimes = 6;
    LinkCosts costs;
    const double steps = std::max(1.0, doubling_seconds({1, 0, 1e300, 1, 1}, member_.hosts, 0));
    costs.short_seconds = shortest(kShortTimes, [this] { exchange_short(); }) / steps;
    costs.long_seconds = shortest(kLongTimes, [this] { shift(64); });
    const double seconds = shortest(2, [this] { shift(kLongBytes); });
    costs.bytes_per_second = kLongBytes / std::max(seconds - costs.long_seconds, 1e-6);
    costs.copied_per_second = kLongBytes / shortest(3, [this] { copy_bytes(incoming_, outgoing_, kLongBytes); });
    return costs;
  }

  /// The worst value of all hosts.
  LinkCosts agree(const LinkCosts& own) {
    const auto hosts = static_cast<std::size_t>(member_.hosts);
    std::vector<LinkCosts> all(hosts);
    std::vector<std::vector<Range>> parts;
    for (std::size_t host = 0; host < hosts; ++host) parts.push_back({{host * sizeof own, sizeof own}});
    all[static_cast<std::size_t>(member_.host)] = own;
    std::vector<std::byte> room(hosts * sizeof own);
    cube_allgather(member_, parts, reinterpret_cast<std::byte*>(all.data()), room.data());
    LinkCosts worst = all.front();
    for (const LinkCosts& host : all) {
      worst.short_seconds = std::max(worst.short_seconds, host.short_seconds);
      worst.long_seconds = std::max(worst.long_seconds, host.long_seconds);
      worst.bytes_per_second = std::min(worst.bytes_per_second, host.bytes_per_second);
      worst.copied_per_second = std::min(worst.copied_per_second, host.copied_per_second);
      worst.columns = std::min(worst.columns, host.columns);
    }
    return worst;
  }

 private:
  static constexpr std::size_t kLongBytes = 256u << 10;

  void exchange_short() {
    const Call call{.dtype = DType::kFloat64};
    double sum = 0, room = 0;
    cube_allreduce(member_, &sum, &room, 1, HostReduction(call, member_.hosts));
  }

  /// A message from every host to the next one.
  void shift(std::size_t bytes) {
    ++tag_;
    arrivals_->receive(channels_.left(), tag_, 0, bytes).throw_if_failed();
    departures_->send(channels_.right(), tag_, 0, bytes).throw_if_failed();
    arrivals_->wait_received().throw_if_failed();
    departures_->wait_sent().throw_if_failed();
  }

  HostChannels& channels_;
  const CubeMember member_;
  std::byte* const incoming_;
  std::byte* const outgoing_;
  const std::unique_ptr<TransportBuffer> arrivals_, departures_;
  std::uint64_t tag_;
};

}  // namespace

LinkCosts measure_links(HostChannels& channels, bool may_use_columns) {
  SmallExchange& small = channels.local.small;
  LinkCosts costs;
  if (channels.is_leader()) {
    Measurement measurement(channels);
    costs = measurement.run();
    costs.columns = may_use_columns ? std::min(channels.topology.columns(), kMostColumns) : 1;
    costs = measurement.agree(costs);
    if (channels.is_alone_on_host()) return costs;
    small.send(&costs, sizeof costs);
    return costs;
  }
  channels.next_tags();  // the leader has used some
  small.send(nullptr, 0);
  std::memcpy(&costs, small.take(0, sizeof costs), sizeof costs);
  return costs;
}

}  // namespace runjob::runtime
