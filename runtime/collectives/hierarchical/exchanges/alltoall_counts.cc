#include "runtime/collectives/hierarchical/exchanges/alltoall_counts.hpp"

#include <utility>

#include "runtime/collectives/copy_bytes.hpp"
#include "runtime/collectives/hierarchical/exchanges/pipeline.hpp"

namespace runjob::runtime {

ByteCounts bytes_of(const std::vector<std::size_t>& counts, std::size_t element) {
  ByteCounts bytes(counts);
  for (std::size_t& count : bytes) count *= element;
  return bytes;
}

ByteCounts offsets_of(const ByteCounts& parts) {
  ByteCounts offsets;
  std::size_t before = 0;
  for (const std::size_t bytes : parts) {
    offsets.push_back(before);
    before += bytes;
  }
  return offsets;
}

AlltoallCounts::AlltoallCounts(Ring& ring, const Call& call) : size_(static_cast<int>(call.counts.size())) {
  if (call.has_equal_parts) {
    equal_ = call.largest_part * size_of(call.dtype);
    return;
  }
  ByteCounts own = bytes_of(call.send_counts, size_of(call.dtype));
  const ByteCounts received = bytes_of(call.counts, size_of(call.dtype));
  own.insert(own.end(), received.begin(), received.end());
  const Pieces pieces(own.size() * sizeof(std::size_t), ring.cell_bytes());
  tables_.assign(static_cast<std::size_t>(ring.size()), ByteCounts(own.size()));
  tables_[static_cast<std::size_t>(ring.rank())] = std::move(own);
  run_pipeline(
      ring, pieces.number(),
      [&](std::size_t i, std::uint64_t step) {
        copy_bytes(ring.cell(ring.rank(), step), piece(ring.rank(), pieces[i]), pieces[i].count);
      },
      [](std::size_t, std::uint64_t) {},
      [&](std::size_t i, std::uint64_t step) {
        for (int rank = 0; rank < ring.size(); ++rank) {
          if (rank == ring.rank()) continue;
          ring.wait_filled(rank, step);
          copy_bytes(piece(rank, pieces[i]), ring.cell(rank, step), pieces[i].count);
        }
      });
}

std::byte* AlltoallCounts::piece(int local, const Range& range) {
  return reinterpret_cast<std::byte*>(tables_[static_cast<std::size_t>(local)].data()) + range.first;
}

}  // namespace runjob::runtime
