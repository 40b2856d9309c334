#pragma once

#include <string>

#include "base/error.hpp"

namespace runjob {

/// Thrown when libssh2 cannot reach a host that the system's ssh may be able to reach. It is not a failure: the caller
/// starts ssh. The message is the reason: "libssh2 1.10.0 cannot use the RSA key /home/me/.ssh/id_rsa".
class SshProgramNeeded : public Error {
 public:
  explicit SshProgramNeeded(const std::string& reason) : Error(Errc::kUnavailable, reason) {}
};

}  // namespace runjob
