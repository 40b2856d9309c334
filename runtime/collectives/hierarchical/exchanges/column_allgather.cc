#include "runtime/collectives/hierarchical/exchanges/column_allgather.hpp"

#include <algorithm>
#include <deque>

#include "runtime/collectives/copy_bytes.hpp"
#include "runtime/collectives/hierarchical/exchanges/alltoall_counts.hpp"

namespace runjob::runtime {
namespace {

class ColumnAllgather {
 public:
  ColumnAllgather(HostChannels& channels, const Call& call)
      : channels_(channels),
        topology_(channels.topology),
        ring_(channels.local.ring),
        input_(static_cast<const std::byte*>(call.input)),
        output_(static_cast<std::byte*>(call.output)),
        parts_(bytes_of(call.counts, size_of(call.dtype))),
        offsets_(offsets_of(parts_)),
        largest_(*std::max_element(parts_.begin(), parts_.end())),
        piece_(std::min(largest_, ring_.cell_bytes())),
        items_(Pieces(largest_, piece_).number() * hosts()),
        tags_(channels.next_tags()) {}

  void run() {
    const std::uint64_t first = ring_.take_steps(items_, piece_);
    for (std::size_t i = 0; i < std::min(items_, kOnTheirWay); ++i) begin(i);
    for (std::size_t i = 0; i <= items_; ++i) {
      if (i < items_) {
        ring_.wait_free(first + i);
        give(i, first + i);
        ring_.filled(first + i);
        if (i + kOnTheirWay < items_) begin(i + kOnTheirWay);
      }
      if (i >= 1) {
        take(i - 1, first + i - 1);
        ring_.done(first + i - 1);
      }
    }
  }

 private:
  /// An item's messages, from the host to the left and to the host to the right; null if it has no bytes.
  struct Messages {
    std::unique_ptr<TransportBuffer> arriving, leaving;
  };

  /// The items whose messages are on their way before the oldest one is waited for.
  static constexpr std::size_t kOnTheirWay = 8;

  std::size_t hosts() const { return static_cast<std::size_t>(topology_.hosts()); }

  // Item i is a piece of the inputs of the host at a distance to the left. At distance 0 these are the own host's.
  int distance(std::size_t i) const { return static_cast<int>(i % hosts()); }
  int right(std::size_t i) const { return (topology_.host() + distance(i)) % topology_.hosts(); }
  int left(std::size_t i) const { return (topology_.host() + topology_.hosts() - distance(i)) % topology_.hosts(); }
  /// The rank of that host in the column `local`.
  int source(std::size_t i, int local) const { return topology_.ranks(left(i))[static_cast<std::size_t>(local)]; }
  /// The item's piece of a rank's input, as a range of the output.
  Range piece_of(std::size_t i, int rank) const {
    const auto index = static_cast<std::size_t>(rank);
    const Range piece = Pieces(parts_[index], piece_)[i / hosts()];
    return {offsets_[index] + piece.first, piece.count};
  }
  Range own_piece(std::size_t i) const {
    const Range piece = piece_of(i, topology_.rank());
    return {piece.first - offsets_[static_cast<std::size_t>(topology_.rank())], piece.count};
  }

  /// Sends this rank's piece to a host, and begins to receive that of another one.
  void begin(std::size_t i) {
    Messages& messages = on_their_way_.emplace_back();
    if (distance(i) == 0) return;
    const Range coming = piece_of(i, source(i, topology_.local_rank())), going = own_piece(i);
    if (coming.count > 0) {
      messages.arriving = channels_.transport->buffer(output_, offsets_.back() + parts_.back());
      messages.arriving->receive(left(i), tags_ + i, coming.first, coming.count).throw_if_failed();
    }
    if (going.count > 0) {
      auto* const input = const_cast<std::byte*>(input_);  // only sent from
      messages.leaving = channels_.transport->buffer(input, parts_[static_cast<std::size_t>(topology_.rank())]);
      messages.leaving->send(right(i), tags_ + i, going.first, going.count).throw_if_failed();
    }
  }

  /// Waits for the messages of the oldest item.
  void finish_oldest() {
    const Messages& messages = on_their_way_.front();
    if (messages.arriving) messages.arriving->wait_received().throw_if_failed();
    if (messages.leaving) messages.leaving->wait_sent().throw_if_failed();
    on_their_way_.pop_front();
  }

  /// Writes this column's piece into this rank's ring cell for the ranks of this host, once it is there.
  void give(std::size_t i, std::uint64_t step) {
    finish_oldest();
    const Range piece = piece_of(i, source(i, topology_.local_rank()));
    if (piece.count == 0) return;  // an empty input may be null
    if (distance(i) == 0) copy_bytes(output_ + piece.first, input_ + own_piece(i).first, piece.count);
    copy_bytes(ring_.cell(ring_.rank(), step), output_ + piece.first, piece.count);
  }

  /// Copies the pieces of the other columns to the output.
  void take(std::size_t i, std::uint64_t step) {
    for (int distance = 1; distance < ring_.size(); ++distance) {
      const int local = (ring_.rank() + distance) % ring_.size();
      const Range piece = piece_of(i, source(i, local));
      if (piece.count == 0) continue;
      ring_.wait_filled(local, step);
      copy_bytes(output_ + piece.first, ring_.cell(local, step), piece.count);
    }
  }

  HostChannels& channels_;
  const Topology& topology_;
  Ring& ring_;
  const std::byte* const input_;
  std::byte* const output_;
  const ByteCounts parts_, offsets_;   ///< by rank
  const std::size_t largest_, piece_;  ///< of the ranks' inputs; of what is shared at once
  const std::size_t items_;
  const std::uint64_t tags_;
  std::deque<Messages> on_their_way_;  ///< of the items that were begun and not given
};

}  // namespace

void column_allgather(HostChannels& channels, const Call& call) {
  ColumnAllgather(channels, call).run();
}

}  // namespace runjob::runtime
