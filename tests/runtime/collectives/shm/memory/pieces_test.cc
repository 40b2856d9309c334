#include "runtime/collectives/shm/memory/pieces.hpp"

#include "tests/catch.hpp"

using namespace runjob::runtime;

TEST_CASE("pieces are equal but for the last", "[runtime][unit]") {
  const Pieces pieces(10, 4);
  CHECK(pieces.number() == 3);
  CHECK(pieces[0] == Range{0, 4});
  CHECK(pieces[2] == Range{8, 2});
  CHECK(pieces[3].count == 0);
  CHECK(Pieces(8, 4).number() == 2);
  CHECK(Pieces(0, 4).number() == 0);
}

TEST_CASE("more elements than 32 bits can count are cut as well", "[runtime][unit]") {
  const std::size_t count = (std::size_t{5} << 31) + 3;
  const Pieces pieces(count, 1u << 18);
  CHECK(pieces.number() == (5u << 13) + 1);
  CHECK(pieces[pieces.number() - 1] == Range{count - 3, 3});
  CHECK(part_of(count, 1, 4, 5).first + part_of(count, 1, 4, 5).count == count);
}

TEST_CASE("the ranks' parts are whole cache lines that together are everything", "[runtime][unit]") {
  for (const std::size_t element : {1, 2, 4, 8}) {
    for (const std::size_t count : {1, 3, 16, 100, 65536, 100003}) {
      for (const int size : {2, 3, 8}) {
        std::size_t next = 0;
        for (int rank = 0; rank < size; ++rank) {
          const Range part = part_of(count, element, rank, size);
          CHECK(part.first == next);
          CHECK((part.count == 0 || part.first * element % 64 == 0));
          next += part.count;
        }
        CHECK(next == count);
      }
    }
  }
}

TEST_CASE("pieces are as many as wanted, unless they would be too small or too large", "[runtime][unit]") {
  CHECK(piece_bytes(1 << 20, 4, 32 << 10, 512 << 10) == 256 << 10);
  CHECK(piece_bytes(1000, 4, 32 << 10, 512 << 10) == 32 << 10);
  CHECK(piece_bytes(1 << 30, 4, 32 << 10, 512 << 10) == 512 << 10);
  CHECK(piece_bytes(40001, 4, 4096, 512 << 10) == 12 << 10);
  CHECK(piece_bytes(1 << 20, 4, 32 << 10, 16 << 10) == 16 << 10);  // a ring cell smaller than the least
}
