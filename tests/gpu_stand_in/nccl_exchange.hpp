#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

/// Messages between the processes of a communicator of the stand-in, in shared memory.
namespace stand_in {

/// Channels from every rank to every rank.
/// Threads  one at a time, except that stop() may be called by any.
class Exchange {
 public:
  struct Part {
    int peer = 0;
    char* memory = nullptr;  ///< of the GPU, as the stand-in reaches it
    std::size_t bytes = 0;
    std::size_t moved = 0;
  };

  /// Maps the file that all ranks have in common. Does not wait for them.
  Exchange(const std::string& file, int rank, int size);
  ~Exchange();
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  /// Waits until all ranks have mapped the file. False after stop().
  bool meet();
  /// Moves all parts, each peer's in their order. False after stop().
  bool move(std::vector<Part> sends, std::vector<Part> receives);
  void stop() { is_stopped_.store(true); }

  int rank() const { return rank_; }
  int size() const { return size_; }

 private:
  static constexpr std::size_t kPiece = 64u << 10;
  struct Channel {
    std::atomic<std::uint64_t> written{0}, read{0};  ///< counts of pieces
    std::atomic<std::uint64_t> bytes{0};             ///< of the piece that lies there
    char data[kPiece];
  };
  struct Shared {
    std::atomic<std::uint32_t> arrived{0};
    alignas(64) Channel channels[1];
  };

  Channel& channel(int from, int to) { return shared_->channels[from * size_ + to]; }
  bool send_some(std::vector<Part>& parts);
  bool receive_some(std::vector<Part>& parts);

  const std::string file_;
  const int rank_, size_;
  std::size_t bytes_ = 0;
  Shared* shared_ = nullptr;
  std::atomic<bool> is_stopped_{false};
};

}  // namespace stand_in
