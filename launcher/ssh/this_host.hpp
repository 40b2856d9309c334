#pragma once

#include <string>

#include "base/error.hpp"

namespace runjob {

/// Thrown when a name leads to this host, so that no connection is needed. It is not a failure: the caller starts an
/// agent here. The message is the address.
class ThisHost : public Error {
 public:
  explicit ThisHost(const std::string& address) : Error(Errc::kUnavailable, address) {}
};

}  // namespace runjob
