#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "runtime/collectives/operation.hpp"

namespace runjob::runtime {

struct Call;

/// Messages among all ranks of a backend, in rounds: in each every rank gives one, and gets those of all. What is
/// negotiated with them needs no coordinator: all ranks see the same messages.
///
/// Life     ready once the backend is connected; gone with it.
/// Order    rounds and the backend's collectives have one order, the same on every rank.
/// Threads  one at a time, which may change; nudge(), leave() and is_awaited() from any.
/// Errors   Error(kAborted): this rank has left, or the exchange has ended; kPeerLost: another rank has left without giving
///          its message; others as the backend's.
class Rounds {
 public:
  using Clock = std::chrono::steady_clock;
  using Deadline = std::optional<Clock::time_point>;  ///< none: for ever

  virtual ~Rounds() = default;

  /// The longest message.
  virtual std::size_t most_bytes() const = 0;
  /// The largest input of an operation that should have its data in the messages: with a larger one the way of collectives,
  /// where not everybody hears everything, costs less.
  virtual std::size_t most_data_bytes() const { return most_bytes(); }
  /// Gives this rank's message of the next round; `tag` is part of it. Does not wait for ranks that do not take part in this
  /// round yet.
  virtual void give(std::uint32_t tag, std::span<const std::byte> bytes) = 0;
  /// A part of a message. Units  bytes.
  struct Part {
    std::size_t first = 0, bytes = 0;
  };
  /// give() of a message of which no other rank reads the part `unread`; message() of this rank may hold anything there.
  virtual void give_without(std::uint32_t tag, std::span<const std::byte> bytes, Part) { give(tag, bytes); }
  /// Waits until all have given theirs; false when the deadline was first: to be called again. `is_busy`: whether a rank
  /// is known to take part, so that it must come within the backend's timeout.
  /// Errors  Error(kTimeout) naming a rank that did not.
  using IsBusy = std::function<bool(int rank)>;
  virtual bool collect(Deadline deadline, const IsBusy& is_busy) = 0;
  /// Whether `rank` has given its message of the round that is being collected.
  virtual bool has_given(int rank) const = 0;
  /// Of the round that was collected; stay until the next give() or the next collective.
  virtual std::uint32_t tag(int rank) const = 0;
  virtual std::span<const std::byte> message(int rank) const = 0;
  /// A hint: the messages have been read, and rounds in which this rank's has as many bytes may follow.
  virtual void expect_next(std::size_t) {}

  /// Whether another rank has given its message of the next round, or has left. Between two rounds.
  virtual bool is_awaited() const = 0;
  /// Sleeps until is_awaited(), a nudge() or the deadline, or for no reason.
  virtual void wait(Deadline deadline) = 0;
  /// What the timeline calls an operation whose data is in the messages; null: nothing.
  virtual const char* activity(Kind) const { return nullptr; }
  /// Reduces `count` elements of each rank's input, by rank, into the call's output, with the bits that the backend's collectives
  /// give: in the order of the ranks, unless they do it in another one.
  virtual void reduce(const Call& call, std::span<const void* const> inputs, std::size_t count) const;

  /// What this process has sent to other hosts for rounds, so far. Any thread.
  struct Traffic {
    std::uint64_t messages = 0, bytes = 0;
  };
  virtual Traffic traffic() const { return {}; }

  /// Ends a wait() of this process that runs or the next one.
  virtual void nudge() = 0;
  /// This rank takes no part any more: its waits end, also collect()'s and its collectives', and so do those of the others that
  /// need more of it than it has given.
  virtual void leave() = 0;
};

}  // namespace runjob::runtime
