#include "runtime/collectives/shm/large_message.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "runtime/collectives/shm/memory/parking.hpp"

namespace runjob::runtime {
namespace {

/// The smallest message for which a system call is worth its cost: docs/developers/measurements.md.
constexpr std::size_t kLeastCmaBytes = 128u << 10;

/// The smallest output for which streaming stores are tried. A smaller one is still in a core's own cache when it is
/// read.
constexpr std::size_t kLeastStreamedBytes = 1u << 20;

}  // namespace

LargeMessage::LargeMessage(Group& group, BufferExchange& buffers, Ring& ring, LargeMessageOptions options)
    : group_(group),
      buffers_(buffers),
      ring_(ring),
      options_(std::move(options)),
      tuner_(std::max(Layout::kRingCells * ring.cell_bytes(), group.layout().cells_bytes())) {}

Algorithm LargeMessage::agree(const Part& part) {
  is_trial_ = false;
  settled_ = tuner_.take_settled(part.kind, part.bytes);
  if (!buffers_.fits(part.buffers.splits.size())) return {};
  buffers_.announce(part.buffers, choose(part));
  // Such a message does not need the others' addresses, and no other rank can have a reason to use this rank's.
  if (settled_ && !reads_buffers(settled_->path) && !buffers_.own_are_symmetric()) return *settled_;
  const Choice choice = buffers_.collect();
  if (buffers_.all_are_symmetric()) return {Path::kSymmetric};
  is_trial_ = choice.is_trial;
  if (choice.probes_cma) {
    if (buffers_.probe_cma() && options_.algorithm == Algorithm{Path::kCma}) return {Path::kCma};
  } else if (!is_trial_ && !settled_) {
    tuner_.settle(part.kind, part.bytes, choice.algorithm);
  }
  return choice.algorithm;
}

/// Only rank 0's choice counts; the others' tuners have no times, and they need none.
Choice LargeMessage::choose(const Part& part) {
  if (group_.rank() != 0) return {};
  if (settled_) return {.algorithm = *settled_};
  if (may_use_cma(part) && !buffers_.has_probed_cma()) return {.probes_cma = true};
  const Algorithms possible = possible_algorithms(part);
  if (options_.algorithm && possible.has(*options_.algorithm)) return {.algorithm = *options_.algorithm};
  if (const auto trial = tuner_.next_trial(part.kind, part.bytes, possible))
    return {.algorithm = *trial, .is_trial = true};
  return {.algorithm = tuner_.fastest(part.kind, part.bytes, possible)};
}

/// The algorithms of all collectives: one that only some of them have must look at `part.kind`.
Algorithms LargeMessage::possible_algorithms(const Part& part) const {
  Algorithms all{{Path::kPipeline}, {Path::kPipeline, Stores::kStreaming}};
  // One choice is made for all messages from a power of two up to the next.
  if (2 * std::bit_floor(part.bytes) <= group_.layout().most_cell_bytes()) {
    all.add({Path::kOneStep});
    all.add({Path::kOneStep, Stores::kStreaming});
  }
  if (may_use_cma(part)) all.add({Path::kCma});
  if (part.copied_out.size() >= kLeastStreamedBytes) {
    all.add({Path::kPipeline, Stores::kCached, Stores::kStreaming});
    all.add({Path::kPipeline, Stores::kStreaming, Stores::kStreaming});
  }
  return all;
}

bool LargeMessage::may_use_cma(const Part& part) const {
  const std::size_t least = options_.algorithm == Algorithm{Path::kCma} ? 1 : kLeastCmaBytes;
  return part.bytes >= least && buffers_.may_use_cma();
}

/// Reads the output as its owner is going to: streaming stores leave it further away than cached ones do. Only the end
/// of a large output is read, since the rest has left the caches anyway.
void LargeMessage::read_once(std::span<const std::byte> output) {
  constexpr std::size_t kLine = 64, kMost = 8u << 20;
  unsigned sum = 0;
  for (std::size_t i = output.size() - std::min(output.size(), kMost); i < output.size(); i += kLine)
    sum += std::to_integer<unsigned>(output[i]);
  asm volatile("" : : "r"(sum));  // keeps the compiler from leaving the loop out
}

/// Returns when no other rank needs this rank's buffers any more.
void LargeMessage::finish(std::uint64_t step) {
  ring_.done(step);
  for (int rank = 0; rank < group_.size(); ++rank) {
    if (rank != group_.rank()) ring_.wait_done(rank, step);
  }
  group_.check();  // a rank that gives up ends the group before it publishes that it is done
}

/// After a failure: ends the group, and waits until every other rank has stopped writing into this rank's buffers, has
/// left, or the farewell is over.
void LargeMessage::withdraw(std::uint64_t step) {
  group_.end();
  ring_.done(step);
  const auto deadline = std::chrono::steady_clock::now() + options_.farewell;
  for (int rank = 0; rank < group_.size(); ++rank) {
    RankFields& theirs = group_.fields(rank);
    const auto is_over = [&] {
      return theirs.progress.done.load(std::memory_order_seq_cst) >= step || group_.has_left(rank);
    };
    sleep_until(is_over, theirs.doorbell, deadline);
  }
}

}  // namespace runjob::runtime
