#include "runtime/collectives/nccl/in_flight_works.hpp"

#include "tests/runtime/collectives/nccl/gpu_ranks.hpp"

using namespace runjob::runtime;
using runjob::Errc;
using runjob::Status;

namespace {

/// A work that the GPU is done with.
std::shared_ptr<cuda::Work> done_work(const UserStream& stream) {
  const cuda::CurrentGpu current(stream.gpu());
  auto work = std::make_shared<cuda::Work>(stream.gpu());
  work->begin_launch(stream.get());
  work->end_launch(stream.get());
  stream.synchronize();
  return work;
}

}  // namespace

TEST_CASE("a work that is launched beside a failure has failed, although its event is complete, over the stand-ins",
          "[runtime][multiproc][stand-in]") {
  on_ranks(1, [](int) {
    const UserStream stream(0);
    nccl::InFlightWorks works([] {}, [](const Status&) {});
    const auto before = done_work(stream), beside = done_work(stream);
    works.add(before);
    works.fail(Status(Errc::kPeerLost, "rank 1 is gone"));  // ends the kernels that are launched and not in the list
    works.add(beside);
    check(before->outcome()->ok() ? RUNJOB_OK : RUNJOB_INTERNAL);
    require(beside->outcome()->message() == "rank 1 is gone", "its values are not valid");
    require(works.drain(std::chrono::seconds(10)), "both end");
    require(works.outcome()->message() == "rank 1 is gone", "the outcome");
  });
}
