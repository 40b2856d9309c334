#include "runtime/collectives/shm/ring.hpp"

#include <future>

#include "tests/catch.hpp"
#include "tests/runtime/collectives/shm/thread_ranks.hpp"

using namespace runjob::runtime;

TEST_CASE("a rank may fill as many slots as there are before the others are done with the first", "[runtime][unit]") {
  const Layout layout = small_layout(2);
  const TestSegment segment(layout);
  Channels writer(segment.data(), layout, options_of(0)), reader(segment.data(), layout, options_of(1));
  const std::uint64_t first = writer.ring.take_steps(Layout::kSlots + 1);
  REQUIRE(reader.ring.take_steps(Layout::kSlots + 1) == first);
  for (std::uint64_t step = first; step < first + Layout::kSlots; ++step) {
    writer.ring.wait_free(step);
    *writer.ring.slot(0, step) = static_cast<std::byte>(step);
    writer.ring.filled(step);
    writer.ring.done(step);
  }
  auto free = std::async(std::launch::async, [&] { writer.ring.wait_free(first + Layout::kSlots); });
  reader.ring.wait_filled(0, first);
  CHECK(*reader.ring.slot(0, first) == static_cast<std::byte>(first));
  CHECK(free.wait_for(std::chrono::seconds(0)) == std::future_status::timeout);
  reader.ring.done(first);
  free.get();
  CHECK(writer.ring.slot(0, first) == writer.ring.slot(0, first + Layout::kSlots));
}

TEST_CASE("slots and cells of different ranks do not overlap and end with the segment", "[runtime][unit]") {
  for (const int size : {2, 3, 8, 256}) {
    const Layout layout(size);
    CHECK(layout.words(size) <= layout.cell(0, 0));
    CHECK(layout.cell(0, 1) - layout.cell(0, 0) == layout.cell_bytes());
    CHECK(layout.cell(size - 1, 1) + layout.cell_bytes() <= layout.slot(0, 0));
    CHECK(layout.slot(1, 0) - layout.slot(0, Layout::kSlots - 1) == layout.slot_bytes());
    CHECK(layout.slot(size - 1, Layout::kSlots - 1) + layout.slot_bytes() == layout.bytes());
    CHECK(layout.bytes() < (128u << 20));
  }
}
