#include "runtime/engine/engine.hpp"

#include <array>
#include <future>
#include <sys/socket.h>

#include "base/error.hpp"
#include "runtime/backends/local_backend.hpp"
#include "runtime/collectives/shm/shm_backend.hpp"
#include "tests/catch.hpp"

using namespace runjob::runtime;
using runjob::Errc;
using runjob::Error;
using runjob::Status;

namespace {

EngineParts parts(int rank, int size, std::unique_ptr<ControlPlane> control, std::unique_ptr<Backend> backend) {
  EngineParts result;
  result.rank = rank;
  result.members = std::vector<std::string>(static_cast<std::size_t>(size), "a");
  result.control = std::move(control);
  result.backends = std::make_unique<BackendSet>(std::move(backend));
  return result;
}

using Backends = std::array<std::unique_ptr<Backend>, 2>;

std::unique_ptr<Engine> alone() {
  auto control = std::make_unique<Coordinator>(std::vector<std::string>{"a"}, std::vector<ControlChannel>(1), nullptr);
  auto engine = std::make_unique<Engine>(parts(0, 1, std::move(control), std::make_unique<LocalBackend>()));
  REQUIRE(engine->connect({}).ok());
  return engine;
}

/// Two engines in one process.
std::array<std::unique_ptr<Engine>, 2> pair(Backends backends) {
  int ends[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  std::vector<ControlChannel> channels(1);
  channels.emplace_back(runjob::UniqueFd(ends[0]));
  const std::vector<std::string> addresses{backends[0]->address(), backends[1]->address()};
  auto zero = std::make_unique<Coordinator>(std::vector<std::string>{"a", "a"}, std::move(channels), nullptr);
  auto one = std::make_unique<Member>(ControlChannel(runjob::UniqueFd(ends[1])), "rank 0 on a");
  std::array<std::unique_ptr<Engine>, 2> engines{
      std::make_unique<Engine>(parts(0, 2, std::move(zero), std::move(backends[0]))),
      std::make_unique<Engine>(parts(1, 2, std::move(one), std::move(backends[1])))};
  auto connected = std::async(std::launch::async, [&] { return engines[0]->connect(addresses); });
  REQUIRE(engines[1]->connect(addresses).ok());
  REQUIRE(connected.get().ok());
  return engines;
}

/// They negotiate in rounds through shared memory.
Backends shared_memory() {
  constexpr std::chrono::seconds kLong{60};
  return {std::make_unique<ShmBackend>(MeshOptions{0, 2, "", kLong, kLong}, ""),
          std::make_unique<ShmBackend>(MeshOptions{1, 2, "", kLong, kLong}, "")};
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
  CHECK(reinterpret_cast<const std::int32_t*>(completion->result().data)[1] == 2);
}

TEST_CASE("an operation waits for the other rank", "[runtime][unit]") {
  const auto engines = pair(shared_memory());
  const auto first = engines[0]->submit(barrier("x"));
  CHECK_FALSE(first->wait(std::chrono::duration<double>(0)));
  const auto second = engines[1]->submit(barrier("x"));
  CHECK(outcome(first).ok());
  CHECK(outcome(second).ok());
}

TEST_CASE("a name in flight and an impossible operation are refused", "[runtime][unit]") {
  const auto engines = pair(shared_memory());
  const auto first = engines[0]->submit(barrier("x"));
  CHECK_THROWS_WITH(engines[0]->submit(barrier("x")),
                    "barrier 'x': an operation of this name is still in flight on rank 0 on a");
  CHECK_THROWS_WITH(engines[0]->submit(Submission{"b", {.kind = Kind::kBroadcast, .root = 2}, nullptr, nullptr}),
                    ContainsSubstring("root rank 2 is not in a job of size 2"));
}

TEST_CASE("a shutdown finishes what waits on both sides, and later submissions are refused", "[runtime][unit]") {
  const auto engines = pair(shared_memory());
  const auto own = engines[0]->submit(barrier("x"));
  const auto others = engines[1]->submit(barrier("y"));
  engines[0]->shutdown();
  CHECK(outcome(own).message() == "rank 0 on a called shutdown()");
  CHECK(outcome(others).message() ==
        "rank 0 on a called shutdown() while rank 1 on a waits in barrier 'y': do all ranks take the same number of "
        "steps? see join()");
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

namespace {

constexpr auto kForEver = std::nullopt;

Submission sum(const std::string& name, std::vector<float>& values) {
  return {name,
          {.kind = Kind::kAllreduce, .dtype = DType::kFloat32, .shape = {static_cast<std::int64_t>(values.size())}},
          values.data(),
          values.data()};
}

/// run(), whatever way it takes; a refusal is an outcome too.
Status run(Engine& engine, const Submission& submission) {
  try {
    return engine.run(lent(submission), kForEver).status;
  } catch (const Error& error) {
    return Status(error);
  }
}

void run_on_both(const std::array<std::unique_ptr<Engine>, 2>& engines, const std::string& name, std::vector<float>& a,
                 std::vector<float>& b) {
  auto other = std::async(std::launch::async, [&] { return run(*engines[1], sum(name, b)); });
  REQUIRE(run(*engines[0], sum(name, a)).ok());
  REQUIRE(other.get().ok());
}

}  // namespace

TEST_CASE("a blocking operation gives its result, the first time and when it is known, small and large",
          "[runtime][unit]") {
  const auto engines = pair(shared_memory());
  const std::size_t count = GENERATE(0u, 1u, 1000u, 100000u);
  for (int i = 0; i < 3; ++i) {
    std::vector<float> a(count, 1), b(count, 2);
    run_on_both(engines, "x", a, b);
    CHECK(a == std::vector<float>(count, 3));
    CHECK(b == a);
  }
}

TEST_CASE("what can never work is refused as such, also when the job has ended", "[runtime][unit]") {
  const auto engines = pair(shared_memory());
  engines[0]->shutdown();
  std::vector<float> values(1);
  Submission scalar = sum("x", values);
  scalar.signature.kind = Kind::kAllgather;
  scalar.signature.shape.clear();
  CHECK_THAT(run(*engines[0], scalar).message(), ContainsSubstring("a scalar has no first dimension"));
  CHECK(run(*engines[0], sum("x", values)).code() == Errc::kAborted);
}

TEST_CASE("blocking operations of several threads, in any order on each rank, find each other", "[runtime][unit]") {
  const auto engines = pair(shared_memory());
  std::vector<std::future<bool>> all;
  for (const auto& engine : engines) {
    for (const int thread : {0, 1, 2}) {
      all.push_back(std::async(std::launch::async, [&engine, thread] {
        bool right = true;
        for (int i = 0; i < 200; ++i) {
          std::vector<float> values(static_cast<std::size_t>(1 + (i * 37) % 50), 1);
          right = run(*engine, sum("t" + std::to_string(thread), values)).ok() && values.back() == 2 && right;
        }
        return right;
      }));
    }
  }
  for (auto& each : all) CHECK(each.get());
}

TEST_CASE("what was submitted and what is waited for go together", "[runtime][unit]") {
  const auto engines = pair(shared_memory());
  for (int i = 0; i < 20; ++i) {
    std::vector<std::vector<float>> values(20, std::vector<float>(300, 1));
    std::vector<std::shared_ptr<Completion>> completions;
    for (std::size_t name = 0; name < 10; ++name) {
      completions.push_back(engines[0]->submit(sum(std::to_string(name), values[name])));
      completions.push_back(engines[1]->submit(sum(std::to_string(9 - name), values[10 + name])));
    }
    for (const auto& completion : completions) CHECK(outcome(completion).ok());
    for (const auto& each : values) CHECK(each == std::vector<float>(300, 2));
  }
}

namespace {

/// Both ranks submit ten sums, the second one in the reverse order.
std::vector<std::shared_ptr<Completion>> submit_step(const std::array<std::unique_ptr<Engine>, 2>& engines,
                                                     std::vector<std::vector<float>>& values) {
  std::vector<std::shared_ptr<Completion>> completions;
  for (std::size_t name = 0; name < 10; ++name) {
    completions.push_back(engines[0]->submit(sum(std::to_string(name), values[name])));
    completions.push_back(engines[1]->submit(sum(std::to_string(9 - name), values[10 + name])));
  }
  return completions;
}

void follow_a_plan(const std::array<std::unique_ptr<Engine>, 2>& engines) {
  std::vector<std::vector<float>> values(20, std::vector<float>(300, 1));
  for (int i = 0; engines[0]->statistics().planned_rounds == 0; ++i) {
    REQUIRE(i < 100);
    for (const auto& completion : submit_step(engines, values)) REQUIRE(outcome(completion).ok());
  }
}

}  // namespace

TEST_CASE("a step that repeats is agreed on in one round", "[runtime][unit]") {
  const auto engines = pair(shared_memory());
  follow_a_plan(engines);
  const Statistics before = engines[0]->statistics();
  for (int i = 0; i < 20; ++i) {
    std::vector<std::vector<float>> values(20, std::vector<float>(300, 1));
    for (const auto& completion : submit_step(engines, values)) CHECK(outcome(completion).ok());
    for (const auto& each : values) CHECK(each == std::vector<float>(300, 2));
  }
  // Now and then the machine may let a rank wait for so long that it departs.
  CHECK(engines[0]->statistics().planned_rounds - before.planned_rounds >= 10);
}

TEST_CASE("an operation of a plan whose other ones do not come is done all the same", "[runtime][unit]") {
  const auto engines = pair(shared_memory());
  follow_a_plan(engines);
  std::vector<float> a(300, 1), b(300, 1), c(2, 1), d(2, 1);
  const auto first = engines[0]->submit(sum("3", a)), second = engines[1]->submit(sum("3", b));
  SECTION("when somebody waits for it") {
    CHECK(engines[0]->wait(*first, kForEver)->ok());
    CHECK(engines[1]->wait(*second, kForEver)->ok());
  }
  SECTION("when nobody does") {
    CHECK(outcome(first).ok());
    CHECK(outcome(second).ok());
  }
  SECTION("when another one, that is not of the plan, is waited for") {
    run_on_both(engines, "other", c, d);
    CHECK(outcome(second).ok());
  }
  CHECK(outcome(first).ok());
  CHECK(a == std::vector<float>(300, 2));
  follow_a_plan(engines);
}

TEST_CASE("a shutdown ends what is held back for a plan", "[runtime][unit]") {
  const auto engines = pair(shared_memory());
  follow_a_plan(engines);
  std::vector<float> a(300, 1);
  const auto held = engines[0]->submit(sum("3", a));
  engines[GENERATE(0u, 1u)]->shutdown();
  CHECK(outcome(held).code() == Errc::kAborted);
  CHECK(a == std::vector<float>(300, 1));
}

TEST_CASE("a wait with a deadline gives up, and the operation goes on", "[runtime][unit]") {
  const auto engines = pair(shared_memory());
  std::vector<float> a(3, 1), b(3, 1);
  if (GENERATE(false, true)) run_on_both(engines, "x", a, b);  // it is known, or not
  const auto soon = Engine::Clock::now() + std::chrono::milliseconds(2);
  const auto completion = engines[0]->run(lent(sum("x", a)), soon).completion;
  REQUIRE(completion);
  CHECK_FALSE(completion->done());
  CHECK_FALSE(engines[0]->wait(*completion, Engine::Clock::now()));
  CHECK_THROWS_WITH(engines[0]->submit(sum("x", a)), ContainsSubstring("still in flight"));
  CHECK(run(*engines[1], sum("x", b)).ok());
  CHECK(engines[0]->wait(*completion, kForEver)->ok());
  CHECK(a == b);
}

TEST_CASE("a rank that blocks learns that the other one has left", "[runtime][unit]") {
  const auto engines = pair(shared_memory());
  std::vector<float> a(3, 1), b(3, 1);
  if (GENERATE(false, true)) run_on_both(engines, "x", a, b);  // it is known, or not
  const std::size_t leaver = GENERATE(0u, 1u);
  auto blocked = std::async(std::launch::async, [&] { return run(*engines[1 - leaver], sum("x", a)); });
  engines[leaver]->shutdown();
  CHECK(blocked.get().message() == "rank " + std::to_string(leaver) + " on a called shutdown() while rank " +
                                       std::to_string(1 - leaver) +
                                       " on a waits in allreduce 'x': do all ranks take the same number of steps? see "
                                       "join()");
}

TEST_CASE("a rank that leaves at once after an operation does not spoil it for a slow one", "[runtime][unit]") {
  const auto engines = pair(shared_memory());
  std::vector<float> a(200000, 1), b(200000, 1);
  auto slow = std::async(std::launch::async, [&] { return run(*engines[1], sum("x", b)); });
  REQUIRE(run(*engines[0], sum("x", a)).ok());
  engines[0]->shutdown();
  CHECK(slow.get().ok());
  CHECK(b == a);
}

TEST_CASE("a shutdown ends this rank's own blocked callers", "[runtime][unit]") {
  const auto engines = pair(shared_memory());
  std::vector<float> a(3, 1);
  auto blocked = std::async(std::launch::async, [&] { return run(*engines[0], sum("x", a)); });
  engines[0]->shutdown();
  CHECK(blocked.get().message() == "rank 0 on a called shutdown()");
}

TEST_CASE("a shutdown with a reason tells it on both sides", "[runtime][unit]") {
  const auto engines = pair(shared_memory());
  const auto own = engines[0]->submit(barrier("x"));
  const auto others = engines[1]->submit(barrier("y"));
  engines[0]->begin_shutdown(Status(Errc::kAborted, "process set 2 was removed"));
  engines[0]->shutdown();
  CHECK(outcome(own).message() == "process set 2 was removed");
  CHECK(outcome(others).message() == "process set 2 was removed");
}

TEST_CASE("an end from outside ends this rank's operations with its cause, and is no failure of the engine",
          "[runtime][unit]") {
  const auto engines = pair(shared_memory());
  bool told = false;
  engines[0]->on_failure([&](const Status&) { return told = true; });
  const auto own = engines[0]->submit(barrier("x"));
  engines[0]->end(Status(Errc::kPeerLost, "rank 7 on z is gone"));
  CHECK(outcome(own).message() == "rank 7 on z is gone");
  engines[0]->shutdown();
  CHECK_FALSE(told);
}

TEST_CASE("a failure waits for the cause that somebody is going to tell", "[runtime][unit]") {
  const auto engines = pair(shared_memory());
  std::promise<void> told;
  engines[1]->on_failure([&](const Status&) {
    told.set_value();
    return true;
  });
  const auto waiting = engines[1]->submit(barrier("x"));
  CHECK(engines[0]->fail(Status(Errc::kTimeout, "a process set was too slow")));
  told.get_future().wait();
  engines[1]->end(Status(Errc::kPeerLost, "rank 7 on z is gone"));
  CHECK(outcome(waiting).message() == "rank 7 on z is gone");
}

TEST_CASE("a failure whose cause nobody tells stands alone", "[runtime][unit]") {
  const auto engines = pair(shared_memory());
  engines[1]->on_failure([](const Status&) { return true; });
  const auto own = engines[0]->submit(barrier("x"));
  const auto others = engines[1]->submit(barrier("y"));
  CHECK(engines[0]->fail(Status(Errc::kTimeout, "a process set was too slow")));
  CHECK(outcome(own).message() == "a process set was too slow");
  CHECK(outcome(others).message() == "a process set was too slow");
  CHECK_FALSE(engines[0]->fail(Status(Errc::kTimeout, "again")));
  Status late;
  engines[0]->on_failure([&](const Status& why) {
    late = why;
    return false;
  });
  CHECK(late.message() == "a process set was too slow");
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
