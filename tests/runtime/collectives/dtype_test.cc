#include "runtime/collectives/dtype.hpp"

#include <set>

#include "tests/catch.hpp"

using namespace runjob::runtime;

TEST_CASE("every dtype has a name and its size", "[runtime][unit]") {
  const std::size_t sizes[] = {1, 1, 2, 2, 4, 8, 2, 4, 8, 1, 2};
  REQUIRE(kDTypeCount == std::size(sizes));
  std::set<std::string_view> names;
  for (int number = 0; number < kDTypeCount; ++number) {
    CHECK(is_dtype(number));
    CHECK(size_of(static_cast<DType>(number)) == sizes[number]);
    names.insert(to_string(static_cast<DType>(number)));
  }
  CHECK(names.size() == kDTypeCount);
  CHECK(to_string(DType::kBfloat16) == "bfloat16");
  CHECK(to_string(DType::kUint8) == "uint8");
  CHECK_FALSE(is_dtype(-1));
  CHECK_FALSE(is_dtype(kDTypeCount));
}

TEST_CASE("the floats of two bytes are the halves", "[runtime][unit]") {
  for (int number = 0; number < kDTypeCount; ++number) {
    const auto dtype = static_cast<DType>(number);
    CHECK(is_half(dtype) == (to_string(dtype).find("float16") != std::string_view::npos));
  }
  CHECK(kDTypeRows[RUNJOB_FLOAT64].kind == ElementKind::kFloat);
  CHECK(kDTypeRows[RUNJOB_BOOL].kind == ElementKind::kBool);
  CHECK(kDTypeRows[RUNJOB_UINT16].kind == ElementKind::kInteger);
}
