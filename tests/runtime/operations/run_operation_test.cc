#include "runtime/operations/run_operation.hpp"

#include <array>

#include "tests/catch.hpp"

using namespace runjob::runtime;
using runjob::Errc;
using runjob::Status;

namespace {

/// Remembers what it was asked to do.
class Recorder : public DataBackend {
 public:
  std::string address() const override { return {}; }
  Status connect(const std::vector<std::string>&) override { return {}; }
  Status run(const Call& call) override {
    calls.push_back(call);
    return outcome;
  }
  void abort(const Status&) override {}

  std::vector<Call> calls;
  Status outcome;
};

struct Done {
  Status status;
  Completion::Result result;
};

/// As rank 1 of 3.
Done run(DataBackend& backend, const Signature& signature, const std::vector<std::int64_t>& extents = {},
         const void* input = nullptr, void* output = nullptr, std::size_t output_bytes = 0) {
  Decision decision;
  decision.name = "x";
  decision.first_extents = extents;
  Done done;
  EngineTimeline timeline(std::make_shared<Timeline>(1, std::vector<std::string>()), 0);
  done.status = run_operation({[&](const Call& call) { return backend.run(call); }}, timeline,
                              {"x", signature, input, output, output_bytes}, decision, 1, 3, done.result);
  return done;
}

}  // namespace

TEST_CASE("an operation reaches the backend with the caller's buffers and its outcome comes back", "[runtime][unit]") {
  Recorder backend;
  backend.outcome = Status(Errc::kTimeout, "slow");
  std::array<float, 6> in{}, out{};
  const Done done = run(backend, {.kind = Kind::kAllreduce, .dtype = DType::kFloat32, .shape = {2, 3}}, {}, &in, &out);
  CHECK(done.status.message() == "slow");
  REQUIRE(backend.calls.size() == 1);
  CHECK(backend.calls[0].input == &in);
  CHECK(backend.calls[0].output == &out);
  CHECK(backend.calls[0].count == 6);
}

TEST_CASE("results that belong to the operation have their extents and each rank's part", "[runtime][unit]") {
  Recorder backend;
  const Done gathered = run(backend, {.kind = Kind::kAllgather, .shape = {2, 5}}, {4, 2, 0});
  CHECK(gathered.result.shape == Shape{6, 5});
  CHECK(backend.calls.back().counts == std::vector<std::size_t>{20, 10, 0});
  CHECK(backend.calls.back().output == gathered.result.bytes.get());

  const Done scattered = run(backend, {.kind = Kind::kReducescatter, .shape = {7, 2}});
  CHECK(scattered.result.shape == Shape{2, 2});
  CHECK(backend.calls.back().counts == std::vector<std::size_t>{6, 4, 4});

  // rows from each sender to each receiver
  const Done exchanged =
      run(backend, {.kind = Kind::kAlltoall, .shape = {6, 2}, .splits = {1, 2, 3}}, {0, 7, 0, 1, 2, 3, 0, 1, 0});
  CHECK(exchanged.result.received_splits == Shape{7, 2, 1});
  CHECK(exchanged.result.shape == Shape{10, 2});
  CHECK(backend.calls.back().send_counts == std::vector<std::size_t>{2, 4, 6});
  CHECK(backend.calls.back().largest_part == 14);
}

TEST_CASE("a result goes into the caller's room when it fits", "[runtime][unit]") {
  Recorder backend;
  std::array<std::uint8_t, 30> room{};
  const Done fits = run(backend, {.kind = Kind::kAllgather, .shape = {2, 5}}, {4, 2, 0}, nullptr, &room, 30);
  CHECK(fits.result.data == &room);
  CHECK(backend.calls.back().output == &room);
  CHECK_FALSE(fits.result.bytes);
  const Done does_not = run(backend, {.kind = Kind::kAllgather, .shape = {2, 5}}, {4, 2, 1}, nullptr, &room, 30);
  CHECK(does_not.result.data == does_not.result.bytes.get());
  CHECK(backend.calls.back().output == does_not.result.bytes.get());
}

TEST_CASE("a join's result is the rank that was last", "[runtime][unit]") {
  Recorder backend;
  const Done done = run(backend, {.kind = Kind::kJoin}, {2});
  CHECK(done.status.ok());
  CHECK(*static_cast<const std::int32_t*>(done.result.data) == 2);
  CHECK(done.result.shape == Shape{1});
  CHECK(backend.calls.empty());
}

TEST_CASE("what moves nothing on any rank does not reach the backend, what does on another one does",
          "[runtime][unit]") {
  Recorder backend;
  CHECK(run(backend, {.kind = Kind::kBarrier}).status.ok());
  CHECK(run(backend, {.kind = Kind::kAllreduce, .shape = {0, 3}}).status.ok());
  const Done empty = run(backend, {.kind = Kind::kAllgather, .shape = {0, 3}}, {0, 0, 0});
  CHECK(empty.result.shape == Shape{0, 3});
  CHECK(backend.calls.empty());
  CHECK(run(backend, {.kind = Kind::kAllgather, .shape = {0, 3}}, {0, 0, 1}).status.ok());
  CHECK(backend.calls.size() == 1);
}
