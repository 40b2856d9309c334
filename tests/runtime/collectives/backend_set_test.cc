#include "runtime/collectives/backend_set.hpp"

#include "runtime/backends/local_backend.hpp"
#include "tests/catch.hpp"
#include "tests/runtime/device_stand_in.hpp"

using namespace runjob::runtime;
using runjob::Errc;
using runjob::Status;

namespace {

/// A job of one rank with a device.
struct Set {
  std::shared_ptr<StandInMemory> memory = std::make_shared<StandInMemory>();
  StandInBackend* device = nullptr;
  std::unique_ptr<BackendSet> set;

  Set() {
    std::vector<std::unique_ptr<DataBackend>> data;
    data.push_back(std::make_unique<StandInBackend>(memory, std::make_unique<LocalBackend>()));
    device = static_cast<StandInBackend*>(data.front().get());
    set = std::make_unique<BackendSet>(std::make_unique<LocalBackend>(), std::move(data));
  }
};

Call sum_of(void* buffer, MemoryKind kind) {
  Call call;
  call.dtype = DType::kInt32;
  call.input = call.output = buffer;
  call.count = 1;
  call.counts = {1};
  call.memory.kind = kind;
  return call;
}

}  // namespace

TEST_CASE("a call goes to the first backend that supports it", "[runtime][unit][stand-in]") {
  Set job;
  REQUIRE(job.set->connect({job.set->address()}).ok());
  std::int32_t value = 5;
  CHECK(job.set->run(sum_of(&value, MemoryKind::kHost)).ok());
  CHECK(job.device->devices.empty());
  void* buffer = job.memory->allocate(sizeof value);
  CHECK(job.set->run(sum_of(buffer, MemoryKind::kDevice)).ok());
  CHECK(job.device->devices.size() == 1);
  Call product = sum_of(buffer, MemoryKind::kDevice);
  product.op = ReduceOp::kProduct;
  CHECK_FALSE(job.set->supports(product));
  CHECK(job.set->run(product).code() == Errc::kUnavailable);
}

TEST_CASE("each kind of memory comes from the backend that has it", "[runtime][unit][stand-in]") {
  Set job;
  CHECK(job.set->buffers(MemoryKind::kDevice) == job.memory);
  CHECK(job.set->buffers(MemoryKind::kHost) == nullptr);
  {
    const Buffer buffer(job.set->buffers(MemoryKind::kDevice), 64);
    CHECK(job.memory->in_use() == 1);
  }
  CHECK(job.memory->in_use() == 0);
}

TEST_CASE("ranks with other backends and malformed addresses are errors", "[runtime][unit][stand-in]") {
  Set job;
  const BackendSet alone(std::make_unique<LocalBackend>(), {});
  const Status other = job.set->connect({job.set->address(), alone.address()});
  CHECK(other.code() == Errc::kProtocol);
  for (const std::string& address : {std::string("nonsense"), std::string(200'000, '\x81')}) {
    const Status status = job.set->connect({job.set->address(), address});
    CHECK(status.code() == Errc::kProtocol);
    CHECK_THAT(status.message(), ContainsSubstring("rank 1 has sent a malformed address of its backends: "));
  }
}
