#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.hpp"
#include "runtime/collectives/operation.hpp"

/// The values of the negotiation and their bytes: the request that a rank announces, and the decision that all ranks
/// come to.
namespace runjob::runtime {

/// "This rank is ready to run this operation."
struct Request {
  std::string name;
  Signature signature;
  /// Not encoded: this rank has seen the end of an operation since it submitted the one before.
  bool begins = false;

  bool operator==(const Request&) const = default;
};

/// The outcome of the negotiation of one operation, the same on all ranks.
struct Decision {
  enum class Type : std::uint8_t {
    kExecute,  ///< all ranks are ready: run `name` now
    kReject,   ///< all ranks submitted `name`, but they disagree: `status`
  };
  Type type = Type::kExecute;
  std::string name;
  /// allgather: each rank's, of a group tensor by tensor; alltoall: the rows that each rank sends to each other one,
  /// sender by sender; join: the rank that joined last.
  std::vector<std::int64_t> first_extents;
  /// Set for an allreduce or barrier in which ranks that have joined take part, with zeros.
  std::shared_ptr<const Signature> for_joined;
  Status status;
  /// Not encoded: where its data begins in the messages of its round, if it is there.
  std::size_t message_offset = 0;
};

std::string encode(const Request& request);
/// Decisions are compared and hashed by their bytes; they are never sent.
std::string encode(const Decision& decision);

/// Errors  Error(kProtocol) when the bytes are not exactly one request.
Request decode_request(std::string_view bytes);

}  // namespace runjob::runtime
