#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.hpp"

/// The messages between the ranks and the coordinator about the life of the job: a rank leaves, fails or is lost. They
/// also carry the records of the timeline to the rank that writes them. One message is one frame of a control channel.
/// All are values, and the functions are pure.
namespace runjob::runtime {

/// An operation that a rank has submitted, and that waits for other ranks.
struct Wait {
  std::string operation;  ///< for people, the same on all ranks: "allreduce 'x' of process set 1"
  int process_set = 0;
  std::vector<std::int64_t> ranks;  ///< the members of the process set, by their ranks in the job; not of set 0
  bool is_join = false;

  bool operator==(const Wait&) const = default;
};

/// A message from a rank to the coordinator.
struct LifeReport {
  enum class Type : std::uint8_t {
    kGoodbye,    ///< this rank is shutting down, because of `status` if there is one
    kDrained,    ///< sent after kLeaving: nothing runs on this rank and on its devices any more
    kFailed,     ///< this rank's backend failed with `status`: a decision is needed
    kSetFailed,  ///< a process set of this rank has ended with `status`, which names its rank; a loss explains more
    kCutOff,     ///< sent after kGoodbye: this rank goes, and what other ranks' devices do with its own may never end
    kClock,      ///< asks for the time in rank 0's trace; `asked` comes back with the answer
    kTrace,      ///< `trace`: records of this rank's track in the trace
    kStalled,    ///< an operation has waited too long for rank `late`: `status`; a decision is needed
    kWaits,      ///< the answer to kAsk: `waits`
    kGiveUp,     ///< this rank gives up `process_set` because of `status`; 0: all that these ranks do
  };
  Type type = Type::kGoodbye;
  Status status = {};
  std::int64_t asked = 0;  ///< nanoseconds
  std::string trace = {};
  int late = -1;  ///< a rank in the job
  std::vector<Wait> waits = {};
  int process_set = 0;
};

/// A message from the coordinator: to all ranks, in one order that is the same everywhere, unless the type says
/// otherwise.
struct LifeDecision {
  enum class Type : std::uint8_t {
    kLeaving,   ///< a rank shuts down: operations that need it end with `status`
    kAbort,     ///< every operation ends with `status` at once
    kReleased,  ///< sent after kLeaving: no rank and no device runs anything, or the coordinator waits no longer
    kClock,     ///< to one rank, as its answer: `asked`, and the time in the trace, `clock`
    kAsk,       ///< an operation has waited too long: each rank reports what it waits in
    kGiveUp,    ///< a rank has given `process_set` up: it ends with `status`, and the others go on. Once for each set
  };
  Type type = Type::kLeaving;
  Status status = {};
  std::int64_t asked = 0;   ///< nanoseconds
  std::int64_t clock = -1;  ///< nanoseconds; -1 while there is no trace
  int lost = -1;            ///< not sent: the rank to which the network has failed here; -1 for none
  /// Of a stall that ends the job: the rank in the job that is late, or that ranks wait for each other.
  int late = -1;
  bool is_mutual = false;
  int process_set = 0;
};

std::string encode(const LifeReport& report);
std::string encode(const LifeDecision& decision);

/// Errors  Error(kProtocol) when the bytes are not exactly one such message.
LifeReport decode_life_report(std::string_view bytes);
LifeDecision decode_life_decision(std::string_view bytes);

}  // namespace runjob::runtime
