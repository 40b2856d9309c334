#include "runtime/collectives/shm/memory/offset_allocator.hpp"

#include <cstdint>
#include <random>
#include <vector>

#include "tests/catch.hpp"

using runjob::runtime::OffsetAllocator;
using runjob::runtime::Range;

namespace {

constexpr std::size_t kPage = OffsetAllocator::kUnit;
using Ranges = std::map<std::size_t, std::size_t>;

}  // namespace

TEST_CASE("the lowest place that fits is given out, in whole pages", "[runtime][unit]") {
  OffsetAllocator allocator(10 * kPage + 7);
  CHECK(allocator.allocate(1) == 0);
  CHECK(allocator.allocate(kPage + 1) == kPage);
  CHECK(allocator.allocate(0) == 3 * kPage);
  CHECK(allocator.free(kPage) == Range{kPage, 2 * kPage});
  CHECK(allocator.allocate(3 * kPage) == 4 * kPage);
  CHECK(allocator.allocate(2 * kPage) == kPage);
  CHECK(allocator.free_ranges() == Ranges{{7 * kPage, 3 * kPage}});
}

TEST_CASE("there is no place for more than there is", "[runtime][unit]") {
  OffsetAllocator allocator(4 * kPage);
  CHECK_FALSE(allocator.allocate(5 * kPage));
  CHECK_FALSE(allocator.allocate(SIZE_MAX));
  CHECK(allocator.allocate(4 * kPage) == 0);
  CHECK_FALSE(allocator.allocate(1));
  CHECK_FALSE(OffsetAllocator(kPage - 1).allocate(1));
}

TEST_CASE("what is freed joins its neighbours", "[runtime][unit]") {
  OffsetAllocator allocator(3 * kPage);
  for (int i = 0; i < 3; ++i) allocator.allocate(kPage);
  const std::vector<std::size_t> order = GENERATE(std::vector<std::size_t>{0, 1, 2}, std::vector<std::size_t>{2, 1, 0},
                                                  std::vector<std::size_t>{0, 2, 1}, std::vector<std::size_t>{1, 0, 2});
  for (const std::size_t i : order) CHECK(allocator.free(i * kPage) == Range{i * kPage, kPage});
  CHECK(allocator.free_ranges() == Ranges{{0, 3 * kPage}});
}

TEST_CASE("nothing is freed that was not given out, or twice", "[runtime][unit]") {
  OffsetAllocator allocator(3 * kPage);
  allocator.allocate(2 * kPage);
  CHECK_FALSE(allocator.free(kPage));
  CHECK(allocator.free(0));
  CHECK_FALSE(allocator.free(0));
}

TEST_CASE("no two pieces overlap, whatever is freed and allocated again", "[runtime][unit]") {
  constexpr std::size_t kPages = 64;
  OffsetAllocator allocator(kPages * kPage);
  std::mt19937 random(7);
  std::map<std::size_t, std::size_t> held;  // offset -> pages
  for (int i = 0; i < 20000; ++i) {
    if (random() % 2 == 0 && !held.empty()) {
      auto piece = std::next(held.begin(), static_cast<std::ptrdiff_t>(random() % held.size()));
      REQUIRE(allocator.free(piece->first) == Range{piece->first, piece->second * kPage});
      held.erase(piece);
    } else {
      const std::size_t pages = 1 + random() % 9;
      if (const auto offset = allocator.allocate(pages * kPage)) held.emplace(*offset, pages);
    }
    std::size_t end = 0, free_pages = kPages;
    for (const auto& [offset, pages] : held) {
      REQUIRE(offset >= end);
      end = offset + pages * kPage;
      free_pages -= pages;
    }
    REQUIRE(end <= kPages * kPage);
    for (const auto& [offset, bytes] : allocator.free_ranges()) free_pages -= bytes / kPage;
    REQUIRE(free_pages == 0);
  }
}
