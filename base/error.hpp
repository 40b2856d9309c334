#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace runjob {

/// Every kind of failure, one vocabulary for all parts. The runtime's C interface numbers its own subset in
/// runjob.h.
enum class Errc {
  kOk,
  kUsage,            ///< the user's command line, variable or file is wrong
  kHostfile,         ///< a host list cannot be parsed
  kInvalidArgument,  ///< a caller passed something that can never work
  kNotInitialized,   ///< init() has not been called, or shutdown() has
  kMismatch,         ///< ranks disagree on a tensor's shape, dtype or kind
  kConnect,          ///< an address could not be reached
  kAuth,             ///< the other side did not prove who it is
  kTimeout,          ///< a deadline passed
  kWorkerFailed,     ///< a rank ended with a failure
  kPeerLost,         ///< another process of the job vanished
  kAborted,          ///< the operation was ended by a shutdown or by another operation's failure
  kProtocol,         ///< bytes that the protocol does not allow
  kUnavailable,      ///< a backend or a program is not there
  kDevice,           ///< a device reported a failure
  kSystem,           ///< a system call failed
  kBug,              ///< our own mistake
};

/// The name of `code` as it appears in messages: "peer lost".
std::string_view to_string(Errc code);

/// The exception of set-up and control code. Its message has the action, its object, the result and the remedy.
class Error : public std::runtime_error {
 public:
  Error(Errc code, const std::string& message) : std::runtime_error(message), code_(code) {}
  Errc code() const { return code_; }

 private:
  Errc code_;
};

/// An Error of kind kSystem: "`what`: `strerror(error_number)`".
Error system_error(const std::string& what, int error_number);

}  // namespace runjob
