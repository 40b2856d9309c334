#pragma once

namespace runjob {

/// The outcome of a connection to another host's address.
struct ProbeOutcome {
  enum class Kind {
    kReached,       ///< that host's agent answered
    kStranger,      ///< another program or host answered: several hosts have this address
    kNotListening,  ///< that host cannot listen on the address itself
    kFailed,
  };
  Kind kind = Kind::kFailed;
  int error_number = 0;  ///< errno, for kNotListening and kFailed

  bool operator==(const ProbeOutcome&) const = default;
};

}  // namespace runjob
