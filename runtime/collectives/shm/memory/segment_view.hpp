#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/collectives/shm/memory/layout.hpp"

namespace runjob::runtime {

/// A mapped segment with its layout: pointers and references to its fields and cells.
/// Owner    the memory is the caller's and outlives the view.
/// Threads  any: a view does not change. The fields have the writers that layout.hpp names.
class SegmentView {
 public:
  SegmentView(void* segment, const Layout& layout) : segment_(static_cast<std::byte*>(segment)), layout_(layout) {}

  const Layout& layout() const { return layout_; }
  int size() const { return layout_.size(); }

  SegmentHeader& header() const { return *reinterpret_cast<SegmentHeader*>(segment_); }
  RankFields& fields(int rank) const { return *reinterpret_cast<RankFields*>(segment_ + layout_.fields(rank)); }
  std::byte* cell(int rank, std::uint64_t step, std::size_t bytes) const {
    return segment_ + layout_.cell(rank, step, bytes);
  }
  std::byte* ring_cell(int rank, std::size_t number) const { return segment_ + layout_.ring_cell(rank, number); }

 private:
  std::byte* const segment_;
  const Layout layout_;
};

}  // namespace runjob::runtime
