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

/// Messages among all ranks of a backend, in rounds. In each round every rank gives one message and gets those of all
/// ranks. A negotiation with them needs no coordinator, because all ranks see the same messages.
///
/// Life     ready once the backend is connected; destroyed with it.
/// Order    rounds and the backend's collectives have one order, the same on every rank.
/// Threads  one at a time, which may change; nudge(), leave() and is_awaited() from any.
/// Errors   Error(kAborted): this rank has left, or the exchange has ended; kPeerLost: another rank has left without
///          giving its message; others as the backend's.
class Rounds {
 public:
  using Clock = std::chrono::steady_clock;
  using Deadline = std::optional<Clock::time_point>;  ///< nullopt: no deadline

  virtual ~Rounds() = default;

  /// The size of the longest message.
  virtual std::size_t most_bytes() const = 0;
  /// The largest input of an operation of this kind that should have its data in the messages. For a larger one a
  /// collective costs less, because there not every rank receives all data, and no message is copied on its way.
  virtual std::size_t most_data_bytes(Kind) const { return most_bytes(); }
  /// Gives this rank's message of the next round; `tag` is part of it. Does not wait for ranks that do not take part in
  /// this round yet.
  virtual void give(std::uint32_t tag, std::span<const std::byte> bytes) = 0;
  /// A part of a message. Units  bytes.
  struct Part {
    std::size_t first = 0, bytes = 0;
  };
  /// As give(), for an operation's input: no other rank reads its part `unread`, and message() of this rank is not
  /// used in this round, so it may be anything.
  /// Owner  `input` is lent until the round is collected.
  virtual void give_input(std::uint32_t tag, std::span<const std::byte> input, Part) { give(tag, input); }
  /// Waits until all ranks have given their messages. Returns false when the deadline passes first; then it must be
  /// called again. `is_busy` is true for a rank that is known to take part, and that must therefore arrive within the
  /// backend's timeout.
  /// Errors  Error(kTimeout) naming a rank that did not.
  using IsBusy = std::function<bool(int rank)>;
  virtual bool collect(Deadline deadline, const IsBusy& is_busy) = 0;
  /// True if `rank` has given its message of the round that is being collected.
  virtual bool has_given(int rank) const = 0;
  /// The tags and messages of the collected round. They are valid until the next give() or the next collective.
  virtual std::uint32_t tag(int rank) const = 0;
  virtual std::span<const std::byte> message(int rank) const = 0;
  /// The time at which `rank` gave its message of the collected round; 0: unknown.
  /// Units  nanoseconds of the steady clock of this process.
  virtual std::int64_t given_at(int) const { return 0; }
  /// Whether the ranks of this host note the time at which they give a message, for given_at(). Off at first, because
  /// it costs a look at the clock for each message. Called by one rank of the host.
  virtual void note_times(bool) {}
  /// A hint: the messages have been read, and rounds in which this rank's message has the same size may follow.
  virtual void expect_next(std::size_t) {}

  /// True if another rank has given its message of the next round, or has left. May be called between two rounds.
  virtual bool is_awaited() const = 0;
  /// Sleeps until is_awaited(), a nudge() or the deadline. It may also return without a reason.
  virtual void wait(Deadline deadline) = 0;
  /// The timeline's name of an operation whose data is in the messages; null for none.
  virtual const char* activity(Kind) const { return nullptr; }
  /// Reduces `count` elements of each rank's input, by rank, into the call's output, with the same bits as the
  /// backend's collectives: in the order of the ranks, unless the backend uses another order.
  virtual void reduce(const Call& call, std::span<const void* const> inputs, std::size_t count) const;

  /// The messages that this process has sent to other hosts for rounds so far. Any thread.
  struct Traffic {
    std::uint64_t messages = 0, bytes = 0;
    /// The kernel of another host has not acknowledged all of it. That host may never get it if this process ends now.
    bool has_unacknowledged = false;
  };
  virtual Traffic traffic() const { return {}; }

  /// Ends a wait() of this process: the current one or the next one.
  virtual void nudge() = 0;
  /// Ends this rank's part. Its waits end, including those of collect() and of its collectives. So do waits of other
  /// ranks that need more messages of it than it has given.
  virtual void leave() = 0;
  /// Announces to other hosts the ranks of this host that have left, where that is this rank's task. True while it is,
  /// and more of them may leave. Any thread.
  virtual bool announce_departures() { return false; }
};

}  // namespace runjob::runtime
