#include "runtime/operations/fusion_plan.hpp"

#include "tests/catch.hpp"

using namespace runjob::runtime;

namespace {

using Plan = std::vector<std::vector<std::size_t>>;

constexpr FusionLimits kLimits{.buffer_bytes = 100, .fuses_below = 60};
const FusionKey kFloats{.dtype = DType::kFloat32, .wire = DType::kFloat32};
const FusionKey kInts{.dtype = DType::kInt32, .wire = DType::kInt32};

FusionItem item(std::size_t operation, std::size_t bytes, const std::optional<FusionKey>& key = kFloats,
                std::size_t tensor = 0) {
  return {operation, tensor, bytes, key};
}

Plan plan(const std::vector<FusionItem>& items, const FusionLimits& limits = kLimits) {
  return plan_fusion(items, limits);
}

}  // namespace

TEST_CASE("tensors fuse until the buffer is full", "[runtime][unit]") {
  CHECK(plan({}).empty());
  CHECK(plan({item(0, 40), item(1, 59), item(2, 1)}) == Plan{{0, 1, 2}});
  CHECK(plan({item(0, 40), item(1, 59), item(2, 2)}) == Plan{{0, 1}, {2}});
}

TEST_CASE("a tensor at the limit is alone, and does not part its neighbours", "[runtime][unit]") {
  CHECK(plan({item(0, 59), item(1, 60), item(2, 41)}) == Plan{{0, 2}, {1}});
  CHECK(plan({item(0, 50), item(1, 50)}, {.buffer_bytes = 49, .fuses_below = 60}) == Plan{{0}, {1}});
}

TEST_CASE("a buffer of no bytes fuses nothing", "[runtime][unit]") {
  CHECK(plan({item(0, 4), item(1, 4)}, {.buffer_bytes = 0, .fuses_below = 60}) == Plan{{0}, {1}});
}

TEST_CASE("everything that a call has but once must be alike", "[runtime][unit]") {
  FusionKey other = kFloats;
  SECTION("dtype") {
    other.dtype = other.wire = DType::kFloat64;
  }
  SECTION("what it travels as") {
    other.wire = DType::kFloat16;
  }
  SECTION("reduction") {
    other.op = ReduceOp::kMax;
  }
  SECTION("prescale") {
    other.prescale = 2;
  }
  SECTION("postscale") {
    other.postscale = 2;
  }
  SECTION("group") {
    other.group = 3;
  }
  CHECK(plan({item(0, 4), item(1, 4, other), item(2, 4), item(3, 4, other)}) == Plan{{0, 2}, {1, 3}});
}

TEST_CASE("other operations are passed over, and the order is that of the first ones", "[runtime][unit]") {
  CHECK(plan({item(0, 0, {}), item(1, 4, kInts), item(2, 4), item(3, 0, {}), item(4, 4, kInts), item(5, 4)}) ==
        Plan{{0}, {1, 4}, {2, 5}, {3}});
}

TEST_CASE("tensors of a group stay together when they fit a buffer", "[runtime][unit]") {
  CHECK(plan({item(0, 50), item(1, 30, kFloats, 0), item(1, 30, kFloats, 1), item(2, 40)}) == Plan{{0}, {1, 2, 3}});
  CHECK(plan({item(0, 40), item(1, 30, kFloats, 0), item(1, 30, kFloats, 1)}) == Plan{{0, 1, 2}});
}

TEST_CASE("a group of several dtypes has a batch for each", "[runtime][unit]") {
  CHECK(plan({item(0, 50), item(1, 30, kFloats, 0), item(1, 30, kInts, 1), item(1, 30, kFloats, 2),
              item(1, 9, kInts, 3)}) == Plan{{0}, {1, 3}, {2, 4}});
}

TEST_CASE("a group that no buffer holds is divided like tensors of its own", "[runtime][unit]") {
  CHECK(plan({item(0, 20), item(1, 40, kFloats, 0), item(1, 40, kFloats, 1), item(1, 40, kFloats, 2)}) ==
        Plan{{0, 1, 2}, {3}});
}

TEST_CASE("tensors of a device have sizes of their own, and are never with those of the host", "[runtime][unit]") {
  FusionKey device = kFloats;
  device.memory = MemoryKind::kDevice;
  const FusionLimits limits{.buffer_bytes = 100, .fuses_below = 60, .device_launch_bytes = 500};
  CHECK(plan({item(0, 40), item(1, 300, device), item(2, 4), item(3, 200, device), item(4, 1, device)}, limits) ==
        Plan{{0, 2}, {1, 3}, {4}});
  CHECK(plan({item(0, 501, device), item(1, 1, device)}, limits) == Plan{{0}, {1}});
  CHECK(plan({item(0, 1, device), item(1, 1, device)}, kLimits) == Plan{{0}, {1}});
}
