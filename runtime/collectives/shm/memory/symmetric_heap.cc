#include "runtime/collectives/shm/memory/symmetric_heap.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/error.hpp"

namespace runjob::runtime {
namespace {

bool is_limited(__rlimit_resource resource) {
  rlimit limit{};
  return ::getrlimit(resource, &limit) != 0 || limit.rlim_cur != RLIM_INFINITY;
}

}  // namespace

std::size_t SymmetricHeap::window_bytes(int size) {
  constexpr std::size_t kMostOfAll = std::size_t{32} << 40;  // of 128 TiB of addresses that a process has
  constexpr std::size_t kStagger = 17;                       // pages, an odd number
  if (is_limited(RLIMIT_FSIZE) || is_limited(RLIMIT_AS)) return 0;
  const auto page = static_cast<std::size_t>(::getpagesize());
  const std::size_t memory = static_cast<std::size_t>(::sysconf(_SC_PHYS_PAGES)) * page;
  const std::size_t room = std::min(std::bit_ceil(memory), std::bit_floor(kMostOfAll / static_cast<std::size_t>(size)));
  return room + kStagger * page;
}

SymmetricHeap::SymmetricHeap(UniqueFd file, std::size_t first_byte, std::size_t window, int rank, int size)
    : first_byte_(first_byte),
      window_(window),
      rank_(rank),
      size_(size),
      file_(std::move(file)),
      allocator_(window),
      open_(static_cast<std::size_t>(size)) {}

SymmetricHeap::~SymmetricHeap() {
  const MutexLock lock(mutex_);
  forget_others();
  if (base_ == nullptr) return;
  // The pages are freed here because other processes may keep the file mapped for long.
  ::madvise(window_of(rank_), open_[static_cast<std::size_t>(rank_)], MADV_REMOVE);
  ::munmap(window_of(rank_), window_);
}

/// Maps all windows at once and without access, which open_window() gives later. Until then a wild pointer hits no
/// memory there, and core dumps and mlockall(2) leave the windows out.
bool SymmetricHeap::map() {
  if (base_ != nullptr) return true;
  if (!file_ || forgotten_) return false;
  const std::size_t bytes = window_ * static_cast<std::size_t>(size_);
  void* base = ::mmap(nullptr, bytes, PROT_NONE, MAP_SHARED, file_.get(), static_cast<off_t>(first_byte_));
  file_.reset();
  if (base == MAP_FAILED) return false;
  static_cast<void>(::madvise(base, bytes, MADV_DONTFORK));
  static_cast<void>(::madvise(base, bytes, MADV_DONTDUMP));
  base_ = static_cast<std::byte*>(base);
  static_cast<void>(::madvise(window_of(rank_), window_, MADV_DOFORK));
  return true;
}

/// Gives access up to `end` at least, in growing steps, which are the same in every process.
bool SymmetricHeap::open_window(int rank, std::size_t end) {
  constexpr std::size_t kLeastStep = 64u << 20;
  std::size_t& open = open_[static_cast<std::size_t>(rank)];
  if (end <= open) return true;
  const std::size_t wanted = std::min(window_, std::bit_ceil(std::max(end, kLeastStep)));
  if (::mprotect(window_of(rank), wanted, PROT_READ | PROT_WRITE) != 0) return false;
  open = wanted;
  return true;
}

void* SymmetricHeap::allocate(std::size_t bytes) {
  const MutexLock lock(mutex_);
  if (!map()) return nullptr;
  const std::optional<std::size_t> offset = allocator_.allocate(bytes);
  if (!offset) return nullptr;
  if (!open_window(rank_, *offset + std::max<std::size_t>(bytes, 1))) {
    allocator_.free(*offset);
    return nullptr;
  }
  return window_of(rank_) + *offset;
}

bool SymmetricHeap::free(void* memory) {
  constexpr std::size_t kMostKept = 32u << 20;
  const MutexLock lock(mutex_);
  auto* const at = static_cast<std::byte*>(memory);
  if (base_ == nullptr || at < window_of(rank_) || at >= window_of(rank_) + window_) return false;
  const std::optional<Range> freed = allocator_.free(static_cast<std::size_t>(at - window_of(rank_)));
  if (!freed) return false;
  kept_ += freed->count;
  if (kept_ > kMostKept) give_back();
  return true;
}

/// Gives the pages of all free ranges back to the system. Called when more than a little is free: until then allocating
/// it again is cheap.
void SymmetricHeap::give_back() {
  const std::size_t end = open_[static_cast<std::size_t>(rank_)];
  for (const auto& [offset, length] : allocator_.free_ranges()) {
    if (offset >= end) continue;
    static_cast<void>(::madvise(window_of(rank_) + offset, std::min(length, end - offset), MADV_REMOVE));
  }
  kept_ = 0;
}

std::optional<std::size_t> SymmetricHeap::offset_of(const void* memory, std::size_t bytes) const {
  const MutexLock lock(mutex_);
  if (base_ == nullptr) return std::nullopt;
  const auto at = reinterpret_cast<std::uintptr_t>(memory), first = reinterpret_cast<std::uintptr_t>(window_of(rank_));
  const std::size_t open = open_[static_cast<std::size_t>(rank_)];
  if (at < first || at - first > open || bytes > open - (at - first)) return std::nullopt;
  return at - first;
}

void SymmetricHeap::map_others() {
  const MutexLock lock(mutex_);
  map();
}

bool SymmetricHeap::is_mapped() const {
  const MutexLock lock(mutex_);
  return base_ != nullptr && !forgotten_;
}

std::byte* SymmetricHeap::at(int rank, std::size_t offset, std::size_t bytes) {
  if (offset > window_ || bytes > window_ - offset) {
    throw Error(Errc::kProtocol, fmt::format("rank {} named memory that it does not have", rank));
  }
  const MutexLock lock(mutex_);
  if (rank != rank_ && !open_window(rank, offset + bytes)) throw system_error("mprotect of shared memory", errno);
  return window_of(rank) + offset;
}

void SymmetricHeap::begin_use() {
  const MutexLock lock(mutex_);
  ++users_;
}

void SymmetricHeap::end_use() {
  const MutexLock lock(mutex_);
  if (--users_ == 0) forget_others();
}

void SymmetricHeap::forget_others() {
  file_.reset();
  if (std::exchange(forgotten_, true) || base_ == nullptr) return;
  std::byte* const end = base_ + window_ * static_cast<std::size_t>(size_);
  std::byte* const after = window_of(rank_) + window_;
  if (window_of(rank_) > base_) ::munmap(base_, static_cast<std::size_t>(window_of(rank_) - base_));
  if (end > after) ::munmap(after, static_cast<std::size_t>(end - after));
}

}  // namespace runjob::runtime
