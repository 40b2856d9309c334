#pragma once

#include "base/unique_handle.hpp"

namespace runjob {

/// A flag that a thread sets and others wait for with poll(). Threads  any.
class EventFd {
 public:
  /// Errors  Error(kSystem): no descriptor is left.
  EventFd();

  /// Readable while the flag is set.
  int get() const { return fd_.get(); }
  void set() const noexcept;
  void clear() const noexcept;

 private:
  UniqueFd fd_;
};

}  // namespace runjob
