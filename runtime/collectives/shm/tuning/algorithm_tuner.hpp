#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <stdexcept>

#include "runtime/collectives/operation.hpp"
#include "runtime/collectives/shm/tuning/algorithm.hpp"
#include "runtime/collectives/shm/tuning/trial_schedule.hpp"
#include "runtime/collectives/shm/tuning/trial_times.hpp"

namespace runjob::runtime {

/// The algorithms that AlgorithmTuner compares, in the order in which they are tried. Messages in symmetric memory are
/// not compared: nothing is faster for them.
inline constexpr std::array kCandidates = {
    Algorithm{Path::kOneStep},
    Algorithm{Path::kOneStep, Stores::kStreaming},
    Algorithm{Path::kPipeline},
    Algorithm{Path::kPipeline, Stores::kStreaming},
    Algorithm{Path::kCma},
    Algorithm{Path::kPipeline, Stores::kCached, Stores::kStreaming},
    Algorithm{Path::kPipeline, Stores::kStreaming, Stores::kStreaming},
};

/// A set of candidates.
class Algorithms {
 public:
  constexpr Algorithms(std::initializer_list<Algorithm> algorithms) {
    for (const Algorithm& algorithm : algorithms) add(algorithm);
  }
  /// Errors  std::invalid_argument for an algorithm that is not a candidate.
  constexpr void add(const Algorithm& algorithm) {
    if (bit(algorithm) == 0) throw std::invalid_argument("an algorithm that kCandidates does not have");
    bits_ |= bit(algorithm);
  }
  constexpr bool has(const Algorithm& algorithm) const { return (bits_ & bit(algorithm)) != 0; }

 private:
  /// 0 for an algorithm that is not a candidate.
  static constexpr unsigned bit(const Algorithm& algorithm) {
    for (std::size_t i = 0; i < kCandidates.size(); ++i) {
      if (kCandidates[i] == algorithm) return 1u << i;
    }
    return 0;
  }
  unsigned bits_ = 0;
};

/// Chooses the algorithm of messages by trying all that are possible. Choices are made for each kind of collective and
/// each power of two of bytes. A series of trials gives some messages to one candidate after the other; then the
/// fastest candidate is settled for many messages, and then all are tried again (trial_schedule.hpp).
///
/// Rank 0 measures, chooses and announces; it calls next_trial(), add() and fastest(). All ranks call take_settled(),
/// and settle() when rank 0 has announced a choice, so that they agree without a message while the choice holds.
///
/// Owner    the caller owns it; it keeps no reference.
/// Threads  one at a time. It reads no clock: the caller passes times.
class AlgorithmTuner {
 public:
  static constexpr int kTrials = 6;                     ///< timed messages of each candidate, at least
  static constexpr std::size_t kLargeBytes = 8u << 20;  ///< fewer trials from there on: each takes milliseconds
  static constexpr int kTrialsOfLarge = 2;              ///< or one, if it takes much longer than another candidate
  /// How many messages a choice holds, in messages of one full series: the first time, and from the fourth time on.
  static constexpr std::uint64_t kFirstStretch = 1, kLastStretch = 32;

  /// `shared_bytes`: bytes of shared memory that a rank writes messages to. A candidate reaches its lasting speed when
  /// it has written all of them once.
  explicit AlgorithmTuner(std::size_t shared_bytes) : shared_bytes_(shared_bytes) {}

  /// The candidate that the next message tries; nothing when each of the `possible` ones has had enough trials.
  /// Streaming stores into the output are tried only with the faster one of the two ways of writing ring cells.
  std::optional<Algorithm> next_trial(Kind kind, std::size_t bytes, Algorithms possible) {
    const Entry& entry = at(kind, bytes);
    for (std::size_t i = 0; i < kCandidates.size(); ++i) {
      const Algorithm& candidate = kCandidates[i];
      if (entry.schedule.is_enough(entry.trials[i].messages) || !possible.has(candidate)) continue;
      if (candidate.out == Stores::kStreaming && candidate.in != faster_stores(entry)) continue;
      if (bytes >= kLargeBytes && is_hopeless(entry, i)) continue;
      return candidate;
    }
    return std::nullopt;
  }
  /// Adds the time of a trial.
  void add(Kind kind, std::size_t bytes, const Algorithm& algorithm, std::chrono::nanoseconds time) {
    Entry& entry = at(kind, bytes);
    Trials& trials = entry.trials[index_of(algorithm)];
    if (entry.schedule.is_timed(trials.messages++)) trials.times.add(time);
  }
  /// The fastest one of the `possible` candidates, when all of them have had their trials.
  Algorithm fastest(Kind kind, std::size_t bytes, Algorithms possible) {
    const Entry& entry = at(kind, bytes);
    std::size_t fastest = index_of(Algorithm{});
    for (std::size_t i = 0; i < kCandidates.size(); ++i) {
      if (possible.has(kCandidates[i]) && time_of(entry, i) < time_of(entry, fastest)) fastest = i;
    }
    return kCandidates[fastest];
  }

  /// Rank 0 has announced to all ranks that such messages use `algorithm` from now on.
  void settle(Kind kind, std::size_t bytes, const Algorithm& algorithm) {
    Entry& entry = at(kind, bytes);
    entry.trials = {};
    entry.settled = algorithm;
    entry.schedule.settle();
  }
  /// The settled algorithm, for one more message; nothing when rank 0 has to announce what the message does.
  std::optional<Algorithm> take_settled(Kind kind, std::size_t bytes) {
    Entry& entry = at(kind, bytes);
    if (entry.schedule.is_trying()) return std::nullopt;
    entry.schedule.count();
    return entry.settled;
  }

 private:
  using Time = std::chrono::nanoseconds;
  struct Trials {
    std::uint64_t messages = 0;
    TrialTimes times;  ///< of the last ones
  };
  struct Entry {
    TrialSchedule schedule;
    std::array<Trials, kCandidates.size()> trials{};
    Algorithm settled = {};
  };

  static constexpr std::size_t index_of(const Algorithm& algorithm) {
    const auto found = std::find(kCandidates.begin(), kCandidates.end(), algorithm);
    return static_cast<std::size_t>(found - kCandidates.begin());
  }
  /// A candidate without a trial counts as the slowest one.
  static Time time_of(const Entry& entry, std::size_t index) {
    const TrialTimes& times = entry.trials[index].times;
    return times.count() == 0 ? Time::max() : times.typical();
  }
  static Stores faster_stores(const Entry& entry) {
    constexpr std::size_t kCached = index_of({Path::kPipeline});
    constexpr std::size_t kStreaming = index_of({Path::kPipeline, Stores::kStreaming});
    return time_of(entry, kStreaming) < time_of(entry, kCached) ? Stores::kStreaming : Stores::kCached;
  }
  /// True if the candidate has turned out to take a quarter longer than another one.
  static bool is_hopeless(const Entry& entry, std::size_t index) {
    const Time time = time_of(entry, index);
    for (std::size_t other = 0; time != Time::max() && other < kCandidates.size(); ++other) {
      if (const Time its = time_of(entry, other); its != Time::max() && time - its > its / 4) return true;
    }
    return false;
  }
  /// The messages that write all of the shared memory once, at most 64, and those that are timed. A large message
  /// writes all of it by itself.
  TrialSchedule::Lengths lengths_of(std::size_t power) const {
    constexpr std::size_t kMost = 64;
    const bool is_large = std::size_t{1} << power >= kLargeBytes;
    const std::uint64_t trials = is_large ? kTrialsOfLarge : kTrials;
    const std::uint64_t messages = std::clamp(shared_bytes_ >> power, std::size_t{is_large ? 0u : 1u}, kMost) + trials;
    const std::uint64_t series = kCandidates.size() * messages;
    return {.messages = messages,
            .timed = std::max(trials, messages / 2),
            .first_period = kFirstStretch * series,
            .last_period = kLastStretch * series};
  }
  Entry& at(Kind kind, std::size_t bytes) {
    const auto power = static_cast<std::size_t>(std::bit_width(bytes)) - 1;
    auto& entry = entries_[static_cast<std::size_t>(kind)][power];
    if (!entry) entry = std::make_unique<Entry>(Entry{TrialSchedule(lengths_of(power))});
    return *entry;
  }

  std::size_t shared_bytes_;
  /// By kind and power of two; null: no message yet.
  std::array<std::array<std::unique_ptr<Entry>, 64>, kKindNumbers> entries_;
};

}  // namespace runjob::runtime
