#include "runtime/collectives/shm/ring.hpp"

#include <future>

#include "tests/catch.hpp"
#include "tests/runtime/collectives/shm/thread_ranks.hpp"

using namespace runjob::runtime;

TEST_CASE("a rank may fill all of its ring cells before the others are done with the first one", "[runtime][unit]") {
  const Layout layout = small_layout(2);
  const TestSegment segment(layout);
  Channels writer(segment.data(), layout, options_of(0)), reader(segment.data(), layout, options_of(1));
  const std::uint64_t first = writer.ring.take_steps(Layout::kRingCells + 1);
  REQUIRE(reader.ring.take_steps(Layout::kRingCells + 1) == first);
  for (std::uint64_t step = first; step < first + Layout::kRingCells; ++step) {
    writer.ring.wait_free(step);
    *writer.ring.cell(0, step) = static_cast<std::byte>(step);
    writer.ring.filled(step);
    writer.ring.done(step);
  }
  auto free = std::async(std::launch::async, [&] { writer.ring.wait_free(first + Layout::kRingCells); });
  reader.ring.wait_filled(0, first);
  CHECK(*reader.ring.cell(0, first) == static_cast<std::byte>(first));
  CHECK(free.wait_for(std::chrono::seconds(0)) == std::future_status::timeout);
  reader.ring.done(first);
  free.get();
  CHECK(writer.ring.cell(0, first) == writer.ring.cell(0, first + Layout::kRingCells));
}

TEST_CASE("cells and ring cells of different ranks do not overlap and end with the segment", "[runtime][unit]") {
  for (const int size : {2, 3, 8, 256}) {
    const Layout layout(size);
    CHECK(layout.fields(size) <= layout.cell(0, 0, 0));
    for (const std::size_t bytes :
         {std::size_t{57}, std::size_t{3000}, layout.cell_bytes(), layout.most_cell_bytes()}) {
      CAPTURE(size, bytes);
      std::size_t most[2] = {}, least[2] = {~std::size_t{0}, ~std::size_t{0}};
      for (std::uint64_t step = 1; step < 100; ++step) {
        const std::size_t begin = layout.cell(size - 1, step, bytes);
        least[step % 2] = std::min(least[step % 2], begin);
        most[step % 2] = std::max(most[step % 2], begin + bytes);
        CHECK(begin != layout.cell(size - 1, step + 2, bytes));
      }
      CHECK(most[0] <= layout.cell(size - 1, 1, 1));
      CHECK(least[1] >= layout.cell(size - 1, 1, 1));
      CHECK(most[1] <= layout.ring_cell(0, 0));
    }
    CHECK(layout.ring_cell(1, 0) - layout.ring_cell(0, Layout::kRingCells - 1) == layout.ring_cell_bytes());
    CHECK(layout.ring_cell(size - 1, Layout::kRingCells - 1) + layout.ring_cell_bytes() == layout.bytes());
    CHECK(layout.bytes() < (128u << 20));
  }
}

TEST_CASE("ranks that share processors use less of each ring cell, at the same places of the segment",
          "[runtime][unit]") {
  const Layout all(8), less = all.with_ring_cells(Layout::ring_cell_bytes_on(2, 8));
  CHECK(Layout::ring_cell_bytes_on(2, 4) == all.ring_cell_bytes());
  CHECK(Layout::ring_cell_bytes_on(1000, 8) == all.ring_cell_bytes());
  CHECK(less.ring_cell_bytes() == all.ring_cell_bytes() / 2);
  CHECK(less.bytes() < all.bytes());
  CHECK(less.cell(7, 3, 100) == all.cell(7, 3, 100));
  CHECK(less.ring_cell(0, 0) == all.ring_cell(0, 0));
  CHECK(Layout(1000).with_ring_cells(Layout::ring_cell_bytes_on(0.1, 1000)).ring_cell_bytes() > 0);
  CHECK(all.with_ring_cells(0).ring_cell_bytes() > 0);
}
