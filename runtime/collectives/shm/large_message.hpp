#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <span>

#include "runtime/collectives/backend.hpp"
#include "runtime/collectives/shm/buffer_exchange.hpp"
#include "runtime/collectives/shm/ring.hpp"
#include "runtime/collectives/shm/stage.hpp"
#include "runtime/collectives/shm/tuning/algorithm_tuner.hpp"

namespace runjob::runtime {

struct LargeMessageOptions {
  /// For tests: the algorithm of all messages for which it is possible, the same on all ranks.
  std::optional<Algorithm> algorithm = {};
  /// How long a rank whose message has failed waits until the others have stopped writing into its buffers.
  std::chrono::milliseconds farewell{100};
};

/// Moves messages that are larger than a small one. For each message all ranks agree on an algorithm: on the symmetric
/// path if all buffers are symmetric memory; otherwise on the one that rank 0 announces, which is a trial, or the
/// fastest one that AlgorithmTuner has found. While a choice holds, no rank waits for another one's announcement.
///
/// Owner    group, buffers and ring are the caller's and outlive this object.
/// Threads  one at a time; all ranks the same messages in the same order.
/// Errors   throws what Group and BufferExchange throw.
class LargeMessage {
 public:
  /// A rank's part of a message.
  struct Part {
    Kind kind = Kind::kAllreduce;
    std::size_t bytes = 0;  ///< of the message; the same on all ranks
    Buffers buffers = {};
    /// The output that this rank copies out of shared memory; empty if it is the input too. A trial's time includes
    /// reading it once.
    std::span<const std::byte> copied_out = {};
    const Call* call = nullptr;  ///< its on_stage is called with the algorithm; null: no call
  };

  LargeMessage(Group& group, BufferExchange& buffers, Ring& ring, LargeMessageOptions options = {});
  LargeMessage(const LargeMessage&) = delete;
  LargeMessage& operator=(const LargeMessage&) = delete;

  /// Agrees on an algorithm and calls `move(algorithm)`, which moves the message. With Path::kCma and Path::kSymmetric
  /// it may use the functions of BufferExchange for views, fetches and splits. In an allreduce or broadcast with
  /// Path::kSymmetric it may also use input() and output().
  ///
  /// When run() has returned on all ranks, no rank touches another one's buffers any more. If it throws, the running
  /// ranks stop touching them within the farewell.
  template <class Move>
  void run(const Part& part, Move move) {
    const Algorithm algorithm = agree(part);
    if (part.call != nullptr) part.call->tell_stage(shm_stage(part.kind), name_of(algorithm));
    if (writes_buffers(algorithm.path) && writes_outputs(part.kind)) return write(algorithm, move);
    const auto start = std::chrono::steady_clock::now();
    move(algorithm);
    if (is_trial_) read_once(part.copied_out);
    // Barrier: other ranks may still be reading this rank's buffers. A trial of every algorithm includes it, so that
    // their times compare.
    if (is_trial_ || reads_buffers(algorithm.path)) finish(ring_.take_steps(1));
    if (is_trial_ && group_.rank() == 0)
      tuner_.add(part.kind, part.bytes, algorithm, std::chrono::steady_clock::now() - start);
  }

 private:
  /// True if the ranks write each other's outputs on a path on which they may: writes_buffers().
  static bool writes_outputs(Kind kind) { return kind == Kind::kAllreduce || kind == Kind::kBroadcast; }
  static void read_once(std::span<const std::byte> output);

  Algorithm agree(const Part& part);
  Choice choose(const Part& part);
  Algorithms possible_algorithms(const Part& part) const;
  bool may_use_cma(const Part& part) const;
  template <class Move>
  void write(const Algorithm& algorithm, Move move) {
    const std::uint64_t step = ring_.take_steps(1);
    try {
      move(algorithm);
      finish(step);
    } catch (...) {
      withdraw(step);
      throw;
    }
  }
  void finish(std::uint64_t step);
  void withdraw(std::uint64_t step);

  Group& group_;
  BufferExchange& buffers_;
  Ring& ring_;
  const LargeMessageOptions options_;
  AlgorithmTuner tuner_;
  std::optional<Algorithm> settled_;  ///< of the current message: its algorithm, if rank 0 need not announce it
  bool is_trial_ = false;             ///< of the current message: its time decides about later ones
};

}  // namespace runjob::runtime
