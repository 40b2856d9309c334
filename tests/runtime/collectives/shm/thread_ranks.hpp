#pragma once

#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "runtime/collectives/shm/channels.hpp"
#include "tests/runtime/collectives/shm/algorithms.hpp"

/// Ranks as threads of this process over one piece of memory, so that ThreadSanitizer sees all that they do.
namespace runjob::runtime {

/// Zero bytes with the alignment of a mapping.
class TestSegment {
 public:
  explicit TestSegment(const Layout& layout) : bytes_(new (std::align_val_t(4096)) std::byte[layout.bytes()]) {
    std::memset(bytes_.get(), 0, layout.bytes());
  }
  void* data() const { return bytes_.get(); }

 private:
  struct Delete {
    void operator()(std::byte* bytes) const { ::operator delete[](bytes, std::align_val_t(4096)); }
  };
  std::unique_ptr<std::byte[], Delete> bytes_;
};

/// So small that a few thousand elements go round the ring several times.
inline Layout small_layout(int size) {
  return Layout(size, 4096, 4096);
}

inline GroupOptions options_of(int rank, Patience patience = {},
                               std::chrono::milliseconds timeout = std::chrono::seconds(60)) {
  return {.rank = rank, .patience = patience, .timeout = timeout};
}

/// Runs `body` on a thread for each rank. Returns what each has thrown, by rank: "" for nothing.
/// `algorithm`: of all messages that may use it; nothing: the tuner chooses.
inline std::vector<std::string> run_threads(const Layout& layout, const std::function<void(Channels&)>& body,
                                            Patience patience = {}, std::optional<Algorithm> algorithm = {}) {
  const TestSegment segment(layout);
  std::vector<std::string> errors(static_cast<std::size_t>(layout.size()));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < layout.size(); ++rank) {
    threads.emplace_back([&, rank] {
      try {
        Channels channels(segment.data(), layout, options_of(rank, patience), {}, {.algorithm = algorithm});
        body(channels);
      } catch (const std::exception& error) {
        errors[static_cast<std::size_t>(rank)] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return errors;
}

inline std::vector<std::string> no_errors(int size) {
  return std::vector<std::string>(static_cast<std::size_t>(size));
}

}  // namespace runjob::runtime
