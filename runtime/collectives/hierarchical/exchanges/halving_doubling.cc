#include "runtime/collectives/hierarchical/exchanges/halving_doubling.hpp"

#include <vector>

#include "runtime/collectives/shm/memory/pieces.hpp"

namespace runjob::runtime {
namespace {

class Exchange {
 public:
  Exchange(HostChannels& channels, void* sum, void* room, std::size_t count, const HostReduction& reduction)
      : cube_(channels.topology.hosts()),
        host_(channels.topology.host()),
        reduction_(reduction),
        element_(size_of(reduction.wide())),
        count_(count),
        sum_(static_cast<std::byte*>(sum)),
        room_(static_cast<std::byte*>(room)),
        sums_(channels.transport->buffer(sum, count * element_)),
        arrivals_(channels.transport->buffer(room, count * element_)),
        tag_(channels.next_tags()) {}

  void run() {
    const int companion = cube_.companion(host_);
    const Range all{0, count_}, none{};
    if (!cube_.contains(host_)) {
      swap(kFold, companion, all, none, *sums_);
      return swap(kUnfold, companion, none, all, *sums_);
    }
    if (companion >= 0) {
      swap(kFold, companion, none, all, *arrivals_);
      join(all, true);
    }
    halve(all);
    double_up();
    if (companion >= 0) swap(kUnfold, companion, all, none, *sums_);
  }

 private:
  /// Tags of the steps; those of a halving or doubling are followed by its distance.
  enum Step : std::uint64_t { kFold = 0, kUnfold = 1, kHalving = 1u << 24, kDoubling = 1u << 25 };

  void halve(Range whole) {
    for (int distance = 1; distance < cube_.size; distance *= 2) {
      const std::size_t half = whole.count / 2;
      const Range lower{whole.first, half}, upper{whole.first + half, whole.count - half};
      const bool keeps_lower = (host_ & distance) == 0;
      const Range kept = keeps_lower ? lower : upper, given = keeps_lower ? upper : lower;
      swap(kHalving + static_cast<unsigned>(distance), host_ ^ distance, given, kept, *arrivals_);
      join(kept, keeps_lower);
      kept_.push_back(kept);
      given_.push_back(given);
      whole = kept;
    }
  }

  void double_up() {
    for (int distance = cube_.size / 2; distance > 0; distance /= 2) {
      swap(kDoubling + static_cast<unsigned>(distance), host_ ^ distance, kept_.back(), given_.back(), *sums_);
      kept_.pop_back();
      given_.pop_back();
    }
  }

  /// Sends one range of the sums and receives another one, in elements. No message is sent or awaited for an empty
  /// range.
  void swap(std::uint64_t step, int peer, const Range& sent, const Range& received, TransportBuffer& to) {
    const std::uint64_t tag = tag_ + step;
    if (received.count > 0) {
      to.receive(peer, tag, received.first * element_, received.count * element_).throw_if_failed();
    }
    if (sent.count > 0) sums_->send(peer, tag, sent.first * element_, sent.count * element_).throw_if_failed();
    if (received.count > 0) to.wait_received().throw_if_failed();
    if (sent.count > 0) sums_->wait_sent().throw_if_failed();
  }

  void join(const Range& range, bool is_lower) {
    std::byte* own = sum_ + range.first * element_;
    const std::byte* theirs = room_ + range.first * element_;
    const void* lower = is_lower ? own : theirs;
    const void* upper = is_lower ? theirs : own;
    reduction_.join(own, lower, upper, range.count);
  }

  const Cube cube_;
  const int host_;
  const HostReduction& reduction_;
  const std::size_t element_, count_;
  std::byte* const sum_;
  std::byte* const room_;
  const std::unique_ptr<TransportBuffer> sums_, arrivals_;
  const std::uint64_t tag_;
  std::vector<Range> kept_, given_;  ///< by step of halving
};

}  // namespace

void halve_and_double(HostChannels& channels, void* sum, void* room, std::size_t count,
                      const HostReduction& reduction) {
  Exchange(channels, sum, room, count, reduction).run();
}

}  // namespace runjob::runtime
