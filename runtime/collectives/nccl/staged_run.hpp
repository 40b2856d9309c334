#pragma once

#include <array>
#include <cstddef>
#include <functional>

#include "runtime/collectives/backend.hpp"
#include "runtime/collectives/cuda/gpu.hpp"

namespace runjob::runtime::nccl {

/// Runs calls on tensors of a GPU through the host: copies the input into pinned memory, runs the call there on a
/// backend of the host, and copies the result back. For calls that NCCL cannot run.
///
/// Pieces   Allreduces and broadcasts go in pieces: while the host works on one, the next one is copied from the GPU,
///          and the one before to it, each on a stream of its own. The other kinds go as a whole.
/// Threads  one.
class StagedRun {
 public:
  /// The host's collectives are as fast with larger pieces; smaller ones leave less that does not overlap.
  static constexpr std::size_t kPieceBytes = 2u << 20;

  /// `host` is lent. The results are there for later work of `stream`. Waits for the GPU end when `is_given_up` returns
  /// true.
  StagedRun(DataBackend& host, cuda::Gpu& gpu, cuda::Stream stream, int rank, std::function<bool()> is_given_up,
            std::size_t piece_bytes = kPieceBytes);
  /// What a copy may still use is never freed.
  ~StagedRun();
  StagedRun(const StagedRun&) = delete;
  StagedRun& operator=(const StagedRun&) = delete;

  /// Blocks until the result is being copied to the GPU. The GPU must be current.
  /// Errors  Error(kDevice); kAborted: given up; values: the host backend's.
  Status run(const Call& call);

 private:
  /// A place for one piece, and the copies that used it last.
  struct Slot {
    void* memory = nullptr;
    cuda::Event copied_out = nullptr, copied_in = nullptr;
  };
  /// One for the host's work, and one for the copies of either direction.
  static constexpr std::size_t kSlots = 3;

  Status run_in_pieces(const Call& call);
  Status run_whole(const Call& call);
  void make_streams();
  void copy_out(const Call& piece, Slot& slot);
  void wait_for(cuda::Event event) const;
  bool is_idle() const;
  std::byte* room(std::size_t bytes);

  DataBackend& host_;
  cuda::Gpu& gpu_;
  const cuda::Stream stream_;
  const int rank_;
  const std::function<bool()> is_given_up_;
  const std::size_t piece_bytes_;
  cuda::Stream out_ = nullptr, in_ = nullptr;  ///< from the first call in pieces on
  cuda::Event begun_ = nullptr, ended_ = nullptr;
  std::array<Slot, kSlots> slots_;
  std::size_t next_slot_ = 0;
  void* memory_ = nullptr;  ///< of whole calls
  std::size_t bytes_ = 0;
};

}  // namespace runjob::runtime::nccl
