#pragma once

#include <string>
#include <utility>

#include "base/error.hpp"

namespace runjob {

/// The code and text of the Error that `body` throws; kOk and "" when it does not.
template <class Body>
std::pair<Errc, std::string> thrown(Body body) {
  try {
    body();
    return {};
  } catch (const Error& error) {
    return {error.code(), error.what()};
  }
}

}  // namespace runjob
