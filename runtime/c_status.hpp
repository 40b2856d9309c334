#pragma once

#include <exception>
#include <runjob/runjob.h>

#include "base/error.hpp"
#include "base/status.hpp"

/// How the C interface answers: with a code, and a text for who asks in the same thread.
namespace runjob::runtime {

/// Keeps a failure's text for last_message().
runjob_code report(const Status& status);

/// Of the last failure in this thread; lent until the next one.
const char* last_message();

/// Runs `body`, which returns a Status, and lets nothing through.
template <class Body>
runjob_code guarded(Body body) noexcept {
  try {
    return report(body());
  } catch (const Error& error) {
    return report(Status(error.code(), error.what()));
  } catch (const std::exception& error) {
    return report(Status(Errc::kSystem, error.what()));
  }
}

}  // namespace runjob::runtime
