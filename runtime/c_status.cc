#include "runtime/c_status.hpp"

#include <string>

namespace runjob::runtime {
namespace {

thread_local std::string last_text;

runjob_code to_code(Errc code) {
  switch (code) {
    case Errc::kOk:
      return RUNJOB_OK;
    case Errc::kUsage:
    case Errc::kHostfile:
    case Errc::kInvalidArgument:
      return RUNJOB_INVALID_ARGUMENT;
    case Errc::kNotInitialized:
      return RUNJOB_NOT_INITIALIZED;
    case Errc::kMismatch:
      return RUNJOB_MISMATCH;
    case Errc::kConnect:
    case Errc::kAuth:
      return RUNJOB_CONNECT;
    case Errc::kTimeout:
      return RUNJOB_TIMEOUT;
    case Errc::kWorkerFailed:
    case Errc::kPeerLost:
      return RUNJOB_PEER_LOST;
    case Errc::kAborted:
      return RUNJOB_ABORTED;
    case Errc::kUnavailable:
    case Errc::kDevice:
      return RUNJOB_UNAVAILABLE;
    case Errc::kProtocol:
    case Errc::kSystem:
    case Errc::kBug:
      return RUNJOB_INTERNAL;
  }
  return RUNJOB_INTERNAL;
}

}  // namespace

runjob_code report(const Status& status) {
  if (status.ok()) return RUNJOB_OK;
  last_text = status.message();
  return to_code(status.code());
}

const char* last_message() {
  return last_text.c_str();
}

}  // namespace runjob::runtime
