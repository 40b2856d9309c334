#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.hpp"
#include "runtime/collectives/operation.hpp"

/// What ranks and the coordinator say to each other, and its bytes: little-endian, one message per frame.
/// Both sides come from one build (the hello is refused otherwise), so there are no optional fields.
namespace runjob::runtime {

/// "This rank is ready to run this operation."
struct Request {
  std::string name;
  Signature signature;
  /// Not sent in the request: this rank has seen the end of an operation since it submitted the one before.
  bool begins = false;

  bool operator==(const Request&) const = default;
};

/// From a rank to the coordinator.
struct RankMessage {
  enum class Type : std::uint8_t {
    kSubmit,   ///< `requests` are ready on this rank
    kGoodbye,  ///< this rank is shutting down, because of `status` if there is one
    kDrained,  ///< after kLeaving: nothing runs on this rank any more
    kFailed,   ///< this rank's backend failed with `status`: a verdict is needed
    kClock,    ///< what time is it in rank 0's trace? `asked` comes back with the answer
    kTrace,    ///< `trace`: records of this rank's track in it
    kSetFailed,  ///< a process set that this rank is in has ended with `status`, which says enough; a loss still explains more
  };
  Type type = Type::kSubmit;
  std::vector<Request> requests;
  Status status;
  std::int64_t asked = 0;  ///< nanoseconds
  std::string trace = {};
};

/// From the coordinator to all ranks, in one order that is the same everywhere.
struct Decision {
  enum class Type : std::uint8_t {
    kExecute,  ///< all ranks are ready: run `name` now
    kReject,   ///< all ranks submitted `name`, but they disagree: `status`
    kLeaving,  ///< a rank shuts down: what was ordered before is finished, everything else ends with `status`
    kAbort,    ///< everything ends with `status`, now
    kReleased,  ///< after kLeaving: no rank runs anything any more, or the coordinator waits no longer; connections may be closed
    kClock,  ///< to one rank, that asked: `first_extents` are its `asked` and the time in the trace, -1 for none
  };
  Type type = Type::kExecute;
  std::string name;
  /// allgather: each rank's, of a group tensor by tensor; alltoall: the rows that each rank sends to each other one, sender by sender.
  /// join: the rank that joined last.
  std::vector<std::int64_t> first_extents;
  /// Of an allreduce in which ranks that have joined take part, with zeros.
  std::shared_ptr<const Signature> for_joined;
  Status status;
  /// Not sent: the last one of its message. What one message orders is fused with each other and with nothing else.
  bool ends_message = false;
  /// Not sent: where its data is in the messages of its round, if it is there.
  std::size_t message_offset = 0;
};

std::string encode(const RankMessage& message);
std::string encode(const std::vector<Decision>& decisions);

/// Errors  Error(kProtocol) when the bytes are not exactly one such message.
RankMessage decode_rank_message(std::string_view bytes);
std::vector<Decision> decode_decisions(std::string_view bytes);

}  // namespace runjob::runtime
