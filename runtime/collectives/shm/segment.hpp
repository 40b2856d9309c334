#pragma once

#include <cstddef>
#include <utility>

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
  /// `behind`: so many bytes more that the file has, but that are not mapped here.
  static Segment create(std::size_t bytes, std::size_t behind = 0);

  /// The one behind a descriptor that another process sent.
  /// Errors  Error(kProtocol) when it is not sealed or smaller; Error(kUnavailable) when it cannot be mapped.
  static Segment attach(UniqueFd descriptor, std::size_t bytes);

  Segment() = default;
  Segment(Segment&& other) noexcept;
  Segment& operator=(Segment&& other) noexcept;
  ~Segment();

  void* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  /// Bytes of the file behind what is mapped here.
  std::size_t behind() const { return behind_; }
  /// -1 when taken. The mapping does not need it.
  int descriptor() const { return descriptor_.get(); }
  UniqueFd take_descriptor() { return std::move(descriptor_); }

 private:
  Segment(UniqueFd descriptor, std::size_t bytes, std::size_t behind);

  UniqueFd descriptor_;
  void* data_ = nullptr;
  std::size_t bytes_ = 0, behind_ = 0;
};

}  // namespace runjob::runtime
