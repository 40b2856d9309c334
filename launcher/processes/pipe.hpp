#pragma once

#include "base/unique_handle.hpp"

namespace runjob {

/// A pipe whose ends a program that this process starts does not inherit.
struct Pipe {
  UniqueFd reader, writer;
};

/// Errors  Error(kSystem): no descriptor is left.
Pipe make_pipe();

}  // namespace runjob
