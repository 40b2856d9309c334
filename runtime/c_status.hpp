#pragma once

#include <exception>
#include <runjob/runjob.h>

#include "base/error.hpp"
#include "base/status.hpp"

/// The C interface's answers: a code, and a text that the same thread can read.
namespace runjob::runtime {

/// Stores a failure's text for last_message() and returns its code.
runjob_code report(const Status& status);

/// The text of the last failure in this thread. Lent until the next one.
const char* last_message();

/// Runs `body`, which returns a Status, and turns every exception into a code.
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
