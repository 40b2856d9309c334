#pragma once

#include <chrono>
#include <filesystem>
#include <iterator>
#include <thread>

namespace runjob::rendezvous {

/// Asks until `condition` holds; false when it does not within a minute. For what another thread or process
/// does without telling.
template <class Condition>
bool eventually(Condition condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

/// Descriptors that this process has open.
inline long open_descriptors() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
}

}  // namespace runjob::rendezvous
