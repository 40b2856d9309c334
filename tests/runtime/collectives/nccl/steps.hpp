#pragma once

#include <atomic>
#include <new>
#include <sys/mman.h>
#include <unistd.h>

namespace runjob::runtime {

/// A counter of the steps that the ranks of a test have reached, in memory that they share.
class Steps {
 public:
  Steps() {
    void* const memory =
        ::mmap(nullptr, sizeof(std::atomic<int>), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    reached_ = new (memory) std::atomic<int>(0);
  }
  ~Steps() { ::munmap(reached_, sizeof(std::atomic<int>)); }
  Steps(const Steps&) = delete;
  Steps& operator=(const Steps&) = delete;

  void reach() { ++*reached_; }
  void wait_for(int steps) const {
    while (*reached_ < steps) ::usleep(500);
  }

 private:
  std::atomic<int>* reached_ = nullptr;
};

}  // namespace runjob::runtime
