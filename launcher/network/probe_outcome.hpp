#pragma once

namespace runjob {

/// What came of connecting to another host's address.
struct ProbeOutcome {
  enum class Kind {
    kReached,       ///< that host's agent answered
    kStranger,      ///< something else did: another host has the same address
    kNotListening,  ///< that host cannot use the address itself
    kFailed,
  };
  Kind kind = Kind::kFailed;
  int error_number = 0;  ///< of kNotListening and kFailed, as errno

  bool operator==(const ProbeOutcome&) const = default;
};

}  // namespace runjob
