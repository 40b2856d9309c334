#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <new>
#include <runjob/runjob.h>
#include <sys/mman.h>
#include <thread>

#include "tests/runtime/set_calls.hpp"

namespace runjob::runtime {

/// Memory that the ranks of a test share: the exchanges of sets that are added by their members, and numbers.
/// Owner    made before the ranks are.
/// Threads  one set at a time on each channel.
class MemberBoard {
 public:
  MemberBoard() {
    void* const at = ::mmap(nullptr, sizeof(Memory), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    require(at != MAP_FAILED, "memory for the ranks");
    memory_ = new (at) Memory;
  }
  ~MemberBoard() { ::munmap(memory_, sizeof(Memory)); }
  MemberBoard(const MemberBoard&) = delete;
  MemberBoard& operator=(const MemberBoard&) = delete;

  /// runjob_process_set_add_members(). Each channel serves one set.
  runjob_code add(int channel, const Ranks& ranks, int rank, std::int32_t& id) {
    Call call{*this, channel, 0, static_cast<int>(ranks.size()), 0};
    while (ranks[static_cast<std::size_t>(call.own)] != rank) ++call.own;
    return runjob_process_set_add_members(ranks.data(), call.size, exchange, &call, &id);
  }
  std::int32_t add(int channel, const Ranks& ranks, int rank) {
    std::int32_t id = 0;
    check(add(channel, ranks, rank, id));
    return id;
  }

  /// True once `is_there` is; false when it takes too long.
  static bool comes(const std::function<bool()>& is_there) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!is_there()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    return true;
  }

  /// Numbers that all ranks see.
  std::atomic<int>& number(int index) { return memory_->numbers[index]; }
  /// Blocks until number(index) is at least `least`. Errors  an exception when it takes too long.
  void await(int index, int least) {
    require(comes([&] { return number(index).load() >= least; }), "another rank has not come");
  }

 private:
  static constexpr int kChannels = 128, kExchanges = 4, kRanks = 8;
  struct Slot {
    std::atomic<bool> is_full{false};
    std::size_t bytes = 0;
    char blob[8192];
  };
  struct Memory {
    Slot slots[kChannels][kExchanges][kRanks];
    std::atomic<int> numbers[16] = {};
  };
  struct Call {
    MemberBoard& board;
    int channel, own, size, count;
  };

  static const char* exchange(void* context, const void* blob, std::size_t bytes,
                              void (*receive)(void* to, std::int32_t rank, const void* blob, std::size_t bytes),
                              void* to) {
    Call& call = *static_cast<Call*>(context);
    if (call.count == kExchanges || call.channel >= kChannels || bytes > sizeof(Slot::blob)) return "the board is full";
    auto& slots = call.board.memory_->slots[call.channel][call.count++];
    Slot& own = slots[call.own];
    std::memcpy(own.blob, blob, bytes);
    own.bytes = bytes;
    own.is_full.store(true);
    for (int member = 0; member < call.size; ++member) {
      if (!comes([&] { return slots[member].is_full.load(); })) return "another rank has not come";
      receive(to, member, slots[member].blob, slots[member].bytes);
    }
    return nullptr;
  }

  Memory* memory_;
};

}  // namespace runjob::runtime
