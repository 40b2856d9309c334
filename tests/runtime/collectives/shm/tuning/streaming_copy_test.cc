#include "runtime/collectives/shm/tuning/streaming_copy.hpp"

#include <vector>

#include "tests/catch.hpp"

using namespace runjob::runtime;

TEST_CASE("a streaming copy copies what it is told to and nothing beside it, at any address", "[runtime][unit]") {
  std::vector<std::byte> from(5000);
  streaming_copy(nullptr, nullptr, 0);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i * 7 + 1);
  for (const std::size_t bytes : {0, 1, 63, 64, 65, 200, 4096, 4500}) {
    for (const std::size_t to_offset : {1, 17, 64}) {
      for (const std::size_t from_offset : {0, 3}) {
        std::vector<std::byte> to(from.size(), std::byte{0}), expected = to;
        streaming_copy(to.data() + to_offset, from.data() + from_offset, bytes);
        for (std::size_t i = 0; i < bytes; ++i) expected[to_offset + i] = from[from_offset + i];
        CHECK(to == expected);
      }
    }
  }
}
