#include "runtime/collectives/float16_convert.hpp"

#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "runtime/collectives/half.hpp"
#include "tests/catch.hpp"

using namespace runjob::runtime;

TEST_CASE("every float16 widens alike with every instruction set", "[runtime][unit]") {
  std::vector<std::uint16_t> all(65536);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint16_t>(i);
  for (const InstructionSet set : instruction_sets()) {
    INFO(to_string(set));
    std::vector<float> wide(all.size());
    float16_to_floats(set)(wide.data(), all.data(), all.size());
    std::size_t different = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const float expected = float16_to_float(all[i]);
      different += std::isnan(expected)
                       ? !std::isnan(wide[i])
                       : std::bit_cast<std::uint32_t>(wide[i]) != std::bit_cast<std::uint32_t>(expected);
    }
    CHECK(different == 0);
  }
}

TEST_CASE("floats of every size narrow alike with every instruction set, for any length and address",
          "[runtime][unit]") {
  std::mt19937 random(3);
  std::vector<float> values;
  for (int i = 0; i < 100000; ++i) values.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(random())));
  for (std::uint32_t half = 0; half < 0x7c00; half += 7) {  // and ties between neighbours
    values.push_back(
        (float16_to_float(static_cast<std::uint16_t>(half)) + float16_to_float(static_cast<std::uint16_t>(half + 1))) /
        2);
  }
  for (const InstructionSet set : instruction_sets()) {
    INFO(to_string(set));
    for (const std::size_t start : {0, 1, 3}) {
      const std::size_t count = values.size() - start;
      std::vector<std::uint16_t> halves(count + 2, 0xabcd);
      floats_to_float16(set)(halves.data() + 1, values.data() + start, count);
      std::size_t different = 0;
      for (std::size_t i = 0; i < count; ++i) {
        const float value = values[start + i];
        const std::uint16_t half = halves[i + 1];
        different += std::isnan(value) ? !std::isnan(float16_to_float(half)) : half != float_to_float16(value);
      }
      CHECK(different == 0);
      CHECK(halves.front() == 0xabcd);
      CHECK(halves.back() == 0xabcd);
    }
  }
}
