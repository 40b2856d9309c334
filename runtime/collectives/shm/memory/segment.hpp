#pragma once

#include <cstddef>
#include <utility>

#include "base/unique_handle.hpp"

namespace runjob::runtime {

/// Memory that processes share through a descriptor: a mapped memfd. It has no name, is no file of /dev/shm, and is
/// freed with the last process that has it. It is sealed against shrinking, so that no process can make another one's
/// access fail with SIGBUS. A forked child does not get the mapping.
/// Owner    owns the mapping, and the descriptor until it is taken.
/// Threads  any, once it is made.
/// Source   memfd_create(2), F_ADD_SEALS in fcntl(2), MADV_DONTFORK in madvise(2).
class Segment {
 public:
  /// Makes a segment of zero bytes, which take memory when they are first written. `behind`: bytes that the file has in
  /// addition and that are not mapped here.
  /// Errors  Error(kUnavailable), for instance if a container's seccomp filter forbids it.
  static Segment create(std::size_t bytes, std::size_t behind = 0);

  /// Maps the segment of a descriptor that another process has sent.
  /// Errors  Error(kProtocol) if it is not sealed or too small; Error(kUnavailable) if it cannot be mapped.
  static Segment attach(UniqueFd descriptor, std::size_t bytes);

  Segment() = default;
  Segment(Segment&& other) noexcept;
  Segment& operator=(Segment&& other) noexcept;
  ~Segment();

  void* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  /// Bytes of the file that follow the mapped ones.
  std::size_t behind() const { return behind_; }
  /// -1 once it is taken. The mapping does not need it.
  int descriptor() const { return descriptor_.get(); }
  UniqueFd take_descriptor() { return std::move(descriptor_); }

 private:
  Segment(UniqueFd descriptor, std::size_t bytes, std::size_t behind);

  UniqueFd descriptor_;
  void* data_ = nullptr;
  std::size_t bytes_ = 0, behind_ = 0;
};

}  // namespace runjob::runtime
