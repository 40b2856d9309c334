#include "runtime/collectives/shm/memory/segment.hpp"

#include <cerrno>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"

namespace runjob::runtime {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

[[noreturn]] void refuse(const char* call) {
  throw Error(Errc::kUnavailable, system_error(call, errno).what());
}

/// A process whose file exceeds the limit gets SIGXFSZ, which ends it unless it ignores the signal as Python does.
void check_file_limit(std::size_t bytes) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || bytes <= limit.rlim_cur) return;
  throw Error(Errc::kUnavailable,
              fmt::format("the shared memory is a file of {} bytes, and the limit (ulimit -f) is {} bytes", bytes,
                          limit.rlim_cur));
}

}  // namespace

Segment Segment::create(std::size_t bytes, std::size_t behind) {
  check_file_limit(bytes + behind);
  UniqueFd descriptor(::memfd_create("runjob", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!descriptor) refuse("memfd_create");
  if (::ftruncate(descriptor.get(), static_cast<off_t>(bytes + behind)) != 0) refuse("ftruncate of a memfd");
  if (::fcntl(descriptor.get(), F_ADD_SEALS, kSeals) != 0) refuse("sealing a memfd");
  return {std::move(descriptor), bytes, behind};
}

Segment Segment::attach(UniqueFd descriptor, std::size_t bytes) {
  struct stat status {};
  const int seals = ::fcntl(descriptor.get(), F_GET_SEALS);
  if (::fstat(descriptor.get(), &status) != 0 || status.st_size < static_cast<off_t>(bytes) || seals != kSeals) {
    throw Error(Errc::kProtocol, "received a descriptor that is no shared memory of this job");
  }
  return {std::move(descriptor), bytes, static_cast<std::size_t>(status.st_size) - bytes};
}

Segment::Segment(UniqueFd descriptor, std::size_t bytes, std::size_t behind)
    : descriptor_(std::move(descriptor)), bytes_(bytes), behind_(behind) {
  void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_.get(), 0);
  if (data == MAP_FAILED) refuse("mapping shared memory");
  data_ = data;
  static_cast<void>(::madvise(data_, bytes_, MADV_DONTFORK));
}

Segment::Segment(Segment&& other) noexcept
    : descriptor_(std::move(other.descriptor_)),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      behind_(std::exchange(other.behind_, 0)) {}

Segment& Segment::operator=(Segment&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(behind_, other.behind_);
  return *this;
}

Segment::~Segment() {
  if (data_ != nullptr) ::munmap(data_, bytes_);
}

}  // namespace runjob::runtime
