#include "runtime/engine/engine.hpp"

#include <array>
#include <sys/socket.h>

#include "base/error.hpp"
#include "runtime/collectives/local_backend.hpp"
#include "tests/catch.hpp"

using namespace runjob::runtime;
using runjob::Errc;
using runjob::Error;
using runjob::Status;

namespace {

EngineParts parts(int rank, int size, std::unique_ptr<ControlPlane> control) {
  EngineParts result;
  result.rank = rank;
  result.size = size;
  result.self = "rank " + std::to_string(rank) + " on a";
  result.control = std::move(control);
  result.backend = std::make_unique<LocalBackend>();
  return result;
}

std::unique_ptr<Engine> make_engine(int rank, int size, std::unique_ptr<ControlPlane> control) {
  auto engine = std::make_unique<Engine>(parts(rank, size, std::move(control)));
  REQUIRE(engine->connect({}).ok());
  return engine;
}

std::unique_ptr<Engine> alone() {
  return make_engine(
      0, 1, std::make_unique<Coordinator>(std::vector<std::string>{"a"}, std::vector<ControlChannel>(1), nullptr));
}

/// Two engines in one process. Barriers, which need no backend, run between them.
std::array<std::unique_ptr<Engine>, 2> pair() {
  int ends[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  std::vector<ControlChannel> channels(1);
  channels.emplace_back(runjob::UniqueFd(ends[0]));
  return {make_engine(0, 2,
                      std::make_unique<Coordinator>(std::vector<std::string>{"a", "a"}, std::move(channels), nullptr)),
          make_engine(1, 2, std::make_unique<Member>(ControlChannel(runjob::UniqueFd(ends[1])), "rank 0 on a"))};
}

Submission barrier(const std::string& name) {
  Submission submission;
  submission.name = name;
  return submission;
}

Status outcome(const std::shared_ptr<Completion>& completion) {
  return completion->wait(std::nullopt).value();
}

}  // namespace

TEST_CASE("an operation of a single rank is finished with its result", "[runtime][unit]") {
  const auto engine = alone();
  const std::int32_t values[] = {1, 2};
  Submission gather{"g", {.kind = Kind::kAllgather, .dtype = DType::kInt32, .shape = {2}}, values, nullptr};
  const auto completion = engine->submit(gather);
  REQUIRE(outcome(completion).ok());
  CHECK(completion->result().shape == Shape{2});
  CHECK(reinterpret_cast<const std::int32_t*>(completion->result().bytes.get())[1] == 2);
}

TEST_CASE("an operation waits for the other rank", "[runtime][unit]") {
  const auto engines = pair();
  const auto first = engines[0]->submit(barrier("x"));
  CHECK_FALSE(first->wait(std::chrono::duration<double>(0)));
  const auto second = engines[1]->submit(barrier("x"));
  CHECK(outcome(first).ok());
  CHECK(outcome(second).ok());
}

TEST_CASE("a name in flight and an impossible operation are refused", "[runtime][unit]") {
  const auto engines = pair();
  const auto first = engines[0]->submit(barrier("x"));
  CHECK_THROWS_WITH(engines[0]->submit(barrier("x")),
                    "barrier 'x': an operation of this name is still in flight on rank 0 on a");
  CHECK_THROWS_WITH(engines[0]->submit({"b", {.kind = Kind::kBroadcast, .root = 2}, nullptr, nullptr}),
                    ContainsSubstring("root rank 2 is not in a job of size 2"));
}

TEST_CASE("a shutdown finishes what waits on both sides, and later submissions are refused", "[runtime][unit]") {
  const auto engines = pair();
  const auto own = engines[0]->submit(barrier("x"));
  const auto others = engines[1]->submit(barrier("y"));
  engines[0]->shutdown();
  CHECK(outcome(own).message() == "rank 0 on a called shutdown()");
  CHECK(outcome(others).message() == "rank 0 on a called shutdown()");
  for (const auto& engine : engines) {
    try {
      engine->submit(barrier("z"));
      FAIL("accepted");
    } catch (const Error& error) {
      CHECK(error.code() == Errc::kAborted);
    }
  }
  engines[0]->shutdown();
}

// The sanitizers end a process that asks for so much memory.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_CASE("a failing allgather's memory fails the job with the reason, not the process", "[runtime][unit]") {
  const auto engine = alone();
  const auto completion = engine->submit(
      {"huge", {.kind = Kind::kAllgather, .dtype = DType::kUint8, .shape = {std::int64_t{1} << 60}}, &engine, nullptr});
  const Status status = outcome(completion);
  CHECK(status.code() == Errc::kSystem);
  CHECK_THAT(status.message(), ContainsSubstring("rank 0 on a: allgather 'huge': "));
}
#endif
