#pragma once

#include <cstddef>

#include "base/unique_handle.hpp"

namespace runjob::runtime {

/// Memory that processes share through a descriptor: a memfd, mapped. It has no name, is no file of /dev/shm, and goes with
/// the last process that has it. It cannot shrink, so that no process can make another one's access a SIGBUS. A forked
/// child does not get the mapping.
/// Source  memfd_create(2), F_ADD_SEALS in fcntl(2), MADV_DONTFORK in madvise(2).
class Segment {
 public:
  /// Zero bytes; they take memory when they are first written.
  /// Errors  Error(kUnavailable), for instance where a container's seccomp filter forbids it.
  static Segment create(std::size_t bytes);

  /// The one behind a descriptor that another process sent.
  /// Errors  Error(kProtocol) when it is not sealed or not of this size; Error(kUnavailable) when it cannot be mapped.
  static Segment attach(UniqueFd descriptor, std::size_t bytes);

  Segment() = default;
  Segment(Segment&& other) noexcept;
  Segment& operator=(Segment&& other) noexcept;
  ~Segment();

  void* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  /// -1 when closed. The mapping does not need it.
  int descriptor() const { return descriptor_.get(); }
  void close_descriptor() { descriptor_.reset(); }

 private:
  Segment(UniqueFd descriptor, std::size_t bytes);

  UniqueFd descriptor_;
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace runjob::runtime
