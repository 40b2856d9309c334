#include "runtime/backends/local_backend.hpp"

#include "tests/catch.hpp"

using namespace runjob::runtime;

TEST_CASE("a single rank's collectives need nobody", "[runtime][unit]") {
  LocalBackend backend;
  REQUIRE(backend.address().empty());
  REQUIRE(backend.connect({""}).ok());
  int done = 0;
  const auto count = [&](const runjob::Status& status) { done += status.ok() ? 1 : 0; };

  const std::int32_t in[] = {5, -5};
  std::int32_t out[] = {0, 0};
  Call allreduce{.kind = Kind::kAllreduce,
                 .dtype = DType::kInt32,
                 .op = ReduceOp::kAverage,
                 .prescale = 0.5,
                 .postscale = 3,
                 .input = in,
                 .output = out,
                 .count = 2};
  count(backend.run(allreduce));
  CHECK(out[0] == 6);  // 2.5 is truncated before, nothing after
  CHECK(out[1] == -6);

  Call allgather{
      .kind = Kind::kAllgather, .dtype = DType::kInt32, .input = in, .output = out, .count = 2, .counts = {2}};
  count(backend.run(allgather));
  CHECK(out[1] == -5);

  Call broadcast{.kind = Kind::kBroadcast, .dtype = DType::kInt32, .input = out, .output = out, .count = 2};
  count(backend.run(broadcast));

  Call alltoall{.kind = Kind::kAlltoall,
                .dtype = DType::kInt32,
                .input = in,
                .output = out,
                .count = 2,
                .counts = {2},
                .send_counts = {2}};
  out[1] = 0;
  count(backend.run(alltoall));
  CHECK(out[1] == -5);

  Call reducescatter = allreduce;
  reducescatter.kind = Kind::kReducescatter;
  reducescatter.counts = {2};
  count(backend.run(reducescatter));
  CHECK(out[0] == 6);
  out[0] = 5;
  CHECK(done == 5);
  CHECK(out[0] == 5);
}
