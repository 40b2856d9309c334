#pragma once

#include <cstdio>
#include <fcntl.h>
#include <stdexcept>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

#include "base/unique_handle.hpp"

namespace runjob {

/// Leads one of this process's standard descriptors elsewhere for the lifetime of the object. Make no assertion
/// meanwhile: a failed one is printed there too.
class Redirected {
 public:
  Redirected(int descriptor, int to) : descriptor_(descriptor), saved_(::fcntl(descriptor, F_DUPFD_CLOEXEC, 3)) {
    std::fflush(nullptr);
    if (!saved_ || ::dup2(to, descriptor) < 0) throw std::runtime_error("cannot redirect a descriptor");
  }
  ~Redirected() {
    std::fflush(nullptr);
    ::dup2(saved_.get(), descriptor_);
  }
  Redirected(const Redirected&) = delete;
  Redirected& operator=(const Redirected&) = delete;

 private:
  const int descriptor_;
  const UniqueFd saved_;
};

/// A file in memory.
inline UniqueFd memory_file() {
  UniqueFd file(::memfd_create("output", MFD_CLOEXEC));
  if (!file) throw std::runtime_error("no file in memory");
  return file;
}

inline std::string contents(const UniqueFd& file) {
  std::string text(static_cast<std::size_t>(::lseek(file.get(), 0, SEEK_END)), '\0');
  if (::pread(file.get(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()))
    throw std::runtime_error("cannot read a file in memory");
  return text;
}

}  // namespace runjob
