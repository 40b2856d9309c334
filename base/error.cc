#include "base/error.hpp"

#include <system_error>

namespace runjob {

std::string_view to_string(Errc code) {
  switch (code) {
    case Errc::kOk:
      return "ok";
    case Errc::kUsage:
      return "usage";
    case Errc::kHostfile:
      return "host list";
    case Errc::kInvalidArgument:
      return "invalid argument";
    case Errc::kNotInitialized:
      return "not initialized";
    case Errc::kMismatch:
      return "mismatch between ranks";
    case Errc::kConnect:
      return "cannot connect";
    case Errc::kAuth:
      return "authentication";
    case Errc::kTimeout:
      return "timeout";
    case Errc::kWorkerFailed:
      return "worker failed";
    case Errc::kPeerLost:
      return "peer lost";
    case Errc::kAborted:
      return "aborted";
    case Errc::kProtocol:
      return "protocol";
    case Errc::kUnavailable:
      return "unavailable";
    case Errc::kDevice:
      return "device";
    case Errc::kSystem:
      return "system";
    case Errc::kBug:
      return "internal error";
  }
  return "unknown";
}

Error system_error(const std::string& what, int error_number) {
  return Error(Errc::kSystem, what + ": " + std::system_category().message(error_number));
}

}  // namespace runjob
