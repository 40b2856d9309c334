#include "runtime/collectives/backend_set.hpp"

#include "base/error.hpp"
#include "runtime/backends/local_backend.hpp"
#include "tests/catch.hpp"
#include "tests/runtime/device_stand_in.hpp"

using namespace runjob::runtime;
using runjob::Errc;
using runjob::Error;
using runjob::Status;

namespace {

/// A job of one rank with a device.
struct Set {
  std::shared_ptr<StandInMemory> memory = std::make_shared<StandInMemory>();
  bool has_driver = true;
  BackendSet backends{std::make_unique<LocalBackend>(), [this](DataBackend& host, const BackendSet::OnFailure&) {
                        if (!has_driver) throw Error(Errc::kUnavailable, "there is no driver");
                        return std::make_unique<StandInBackend>(memory, host);
                      }};

  Status run(const Call& call) { return backends.run({&call, 1}); }
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

TEST_CASE("a call runs where its tensors lie, and the first one on a device makes its backend",
          "[runtime][unit][stand-in]") {
  Set job;
  std::int32_t value = 5;
  CHECK(job.run(sum_of(&value, MemoryKind::kHost)).ok());
  CHECK(job.backends.made_device() == nullptr);
  void* buffer = job.memory->allocate(sizeof value);
  CHECK(job.run(sum_of(buffer, MemoryKind::kDevice)).ok());
  CHECK(job.backends.made_device() == &device_of(job.backends));
  CHECK(device_of(job.backends).devices.size() == 1);
}

TEST_CASE("each kind of memory comes from the backend that has it", "[runtime][unit][stand-in]") {
  Set job;
  CHECK(job.backends.buffers(MemoryKind::kDevice) == job.memory);
  CHECK(job.backends.buffers(MemoryKind::kHost) == nullptr);
  {
    const Buffer buffer(job.backends.buffers(MemoryKind::kDevice), 64);
    CHECK(job.memory->in_use() == 1);
  }
  CHECK(job.memory->in_use() == 0);
}

TEST_CASE("a device that cannot be used is the error of each call, until it can", "[runtime][unit][stand-in]") {
  Set job;
  job.has_driver = false;
  void* buffer = job.memory->allocate(sizeof(std::int32_t));
  const Status status = job.run(sum_of(buffer, MemoryKind::kDevice));
  CHECK(status.code() == Errc::kUnavailable);
  CHECK(status.message() == "there is no driver");
  CHECK(job.backends.buffers(MemoryKind::kDevice) == nullptr);
  CHECK(job.backends.device_outcome() == Status());
  job.has_driver = true;
  CHECK(job.run(sum_of(buffer, MemoryKind::kDevice)).ok());
}

TEST_CASE("no backend of devices is made once the job has ended", "[runtime][unit][stand-in]") {
  Set job;
  job.backends.abort(Status(Errc::kPeerLost, "rank 1 has left"));
  void* buffer = job.memory->allocate(sizeof(std::int32_t));
  CHECK(job.run(sum_of(buffer, MemoryKind::kDevice)).message() == "rank 1 has left");
  CHECK(job.backends.made_device() == nullptr);
}
