#include "runtime/collectives/copy_bytes.hpp"

#include <algorithm>
#include <memory>

#include "tests/catch.hpp"

using runjob::runtime::copy_bytes;
using runjob::runtime::is_slow_to_copy;
using runjob::runtime::kLeastLongCopy;

namespace {

constexpr std::size_t kPage = 4096;

struct alignas(kPage) Memory {
  std::byte bytes[4 * kPage];
};

void fill(Memory& memory, unsigned first) {
  for (std::byte& byte : memory.bytes) byte = static_cast<std::byte>(first++ % 251);
}

}  // namespace

TEST_CASE("all bytes are copied, and no others, wherever the memory lies", "[runtime][unit]") {
  const auto from = std::make_unique<Memory>(), to = std::make_unique<Memory>();
  fill(*from, 1);
  for (const std::size_t source : {0u, 1u, 16u, 4090u}) {
    for (const std::size_t after : {0u, 1u, 16u, 31u, 32u, 64u, 4095u}) {
      for (const std::size_t bytes : {0ul, 1ul, kLeastLongCopy - 1, kLeastLongCopy, kLeastLongCopy + 63, kPage + 1}) {
        fill(*to, 100);
        const auto expected = std::make_unique<Memory>(*to);
        const std::size_t target = (source + after) % kPage;
        std::copy_n(from->bytes + source, bytes, expected->bytes + target);
        copy_bytes(to->bytes + target, from->bytes + source, bytes);
        INFO(bytes << " bytes from " << source << " to " << target);
        REQUIRE(std::equal(std::begin(to->bytes), std::end(to->bytes), expected->bytes));
      }
    }
  }
  copy_bytes(nullptr, nullptr, 0);
}

#if defined(__x86_64__)
TEST_CASE("a target that begins 1 to 31 bytes after the source in their pages is slow to copy to", "[runtime][unit]") {
  const auto memory = std::make_unique<Memory>();
  const std::byte* const from = memory->bytes + 4080;
  CHECK_FALSE(is_slow_to_copy(from, from));
  CHECK_FALSE(is_slow_to_copy(from - 1, from));
  CHECK(is_slow_to_copy(from + 1, from));
  CHECK(is_slow_to_copy(from + 31, from));
  CHECK(is_slow_to_copy(from + kPage + 31, from));
  CHECK(is_slow_to_copy(from - kPage + 16, from));
  CHECK_FALSE(is_slow_to_copy(from + 32, from));
}
#endif
