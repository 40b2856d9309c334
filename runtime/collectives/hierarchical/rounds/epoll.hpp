#pragma once

#include <initializer_list>

#include "base/unique_handle.hpp"

namespace runjob::runtime {

/// An epoll that reports when one of `descriptors` has input, with the descriptor in `data.fd`.
/// Owner    the descriptors are the caller's, and stay open as long as the epoll is used.
/// Errors   Error of the system.
UniqueFd epoll_of_inputs(std::initializer_list<int> descriptors);

}  // namespace runjob::runtime
