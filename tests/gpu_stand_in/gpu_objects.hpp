#pragma once

#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "tests/gpu_stand_in/settings.hpp"

/// The parts of which the stand-in of a GPU consists.
namespace stand_in {

/// Memory that the host cannot touch: pages that are mapped twice, without access and for the stand-in.
class Memory {
 public:
  explicit Memory(std::size_t bytes) : bytes_(bytes) {}

  std::size_t bytes() const { return bytes_; }
  std::size_t free_bytes() {
    const std::lock_guard lock(mutex_);
    return bytes_ - used_;
  }
  /// True for an address inside of memory that is allocated and not freed.
  bool is_used(const void* memory) {
    const std::lock_guard lock(mutex_);
    const auto found = find(static_cast<const char*>(memory));
    return found != blocks_.end() && found->second.is_used;
  }

  void* allocate(std::size_t bytes) {
    const std::size_t page = 4096, whole = (std::max<std::size_t>(bytes, 1) + page - 1) / page * page;
    const std::lock_guard lock(mutex_);
    if (whole > bytes_ - used_) return nullptr;
    used_ += whole;
    auto& kept = kept_[whole];
    if (!kept.empty()) {
      void* const memory = kept.back();
      kept.pop_back();
      blocks_[static_cast<char*>(memory)].is_used = true;
      return memory;
    }
    const int file = ::memfd_create("GPU stand-in", MFD_CLOEXEC);
    if (file < 0 || ::ftruncate(file, static_cast<off_t>(whole)) != 0) return nullptr;
    void* const memory = ::mmap(nullptr, whole, PROT_NONE, MAP_SHARED, file, 0);
    void* const view = ::mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    ::close(file);
    if (memory == MAP_FAILED || view == MAP_FAILED) return nullptr;
    blocks_[static_cast<char*>(memory)] = {static_cast<char*>(view), whole, true};
    return memory;
  }

  bool free(void* memory) {
    const std::lock_guard lock(mutex_);
    const auto found = blocks_.find(static_cast<char*>(memory));
    if (found == blocks_.end() || !found->second.is_used) return false;
    found->second.is_used = false;
    used_ -= found->second.bytes;
    kept_[found->second.bytes].push_back(memory);
    return true;
  }

  /// Null for memory that is not of this GPU, or not as long.
  void* view(const void* memory, std::size_t bytes) {
    const auto* const byte = static_cast<const char*>(memory);
    const std::lock_guard lock(mutex_);
    const auto found = find(byte);
    if (found == blocks_.end()) return nullptr;
    const std::size_t offset = static_cast<std::size_t>(byte - found->first);
    return offset + bytes <= found->second.bytes ? found->second.view + offset : nullptr;
  }

 private:
  struct Block {
    char* view = nullptr;
    std::size_t bytes = 0;
    bool is_used = false;
  };
  using Blocks = std::map<char*, Block>;

  /// The block in which the byte lies; the end for none.
  Blocks::iterator find(const char* byte) {
    auto found = blocks_.upper_bound(const_cast<char*>(byte));
    if (found == blocks_.begin()) return blocks_.end();
    --found;
    return byte < found->first + found->second.bytes ? found : blocks_.end();
  }

  const std::size_t bytes_;
  std::mutex mutex_;
  Blocks blocks_;
  std::size_t used_ = 0;
  std::map<std::size_t, std::vector<void*>> kept_;  ///< freed, by size; the last one freed is given out first
};

/// The state of an event, shared with the work in streams that records it or waits for it.
struct EventState {
  std::mutex mutex;
  std::condition_variable changed;
  std::uint64_t recorded = 0, done = 0;  ///< counts of records

  void reach(std::uint64_t number) {
    const std::lock_guard lock(mutex);
    done = std::max(done, number);
    changed.notify_all();
  }
  void wait(std::uint64_t number) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return done >= number; });
  }
};

/// A thread that does one piece of work after the other; without delays (-1), the thread that queues the work.
class StreamThread {
 public:
  StreamThread(int gpu, int most_delay_us) : gpu_(gpu), most_delay_us_(most_delay_us) {
    if (most_delay_us >= 0) std::thread([this] { run(); }).detach();
  }

  int gpu() const { return gpu_; }
  bool is_capturing = false;

  void enqueue(std::function<void()> work) {
    if (most_delay_us_ < 0) return work();
    const std::lock_guard lock(mutex_);
    work_.push_back(std::move(work));
    changed_.notify_all();
  }
  bool is_idle() {
    const std::lock_guard lock(mutex_);
    return work_.empty();
  }
  void synchronize() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return work_.empty(); });
  }

 private:
  [[noreturn]] void run() {
    std::minstd_rand random(static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(this)) ^
                            static_cast<unsigned>(::getpid()));
    for (;;) {
      std::function<void()>* next = nullptr;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return !work_.empty(); });
        next = &work_.front();
      }
      if (most_delay_us_ > 0) {
        std::this_thread::sleep_for(std::chrono::microseconds(random() % static_cast<unsigned>(most_delay_us_ + 1)));
      }
      (*next)();
      const std::lock_guard lock(mutex_);
      work_.pop_front();
      changed_.notify_all();
    }
  }

  const int gpu_, most_delay_us_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> work_;
};

/// Room for the kernels that run at the same time.
class Room {
 public:
  explicit Room(int kernels) : left_(kernels) {}
  void enter() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return left_ > 0; });
    --left_;
  }
  void leave() {
    const std::lock_guard lock(mutex_);
    ++left_;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int left_;
};

}  // namespace stand_in
