#include "runtime/operations/handle_table.hpp"

#include <thread>

#include "tests/catch.hpp"

using namespace runjob::runtime;
using runjob::Errc;
using runjob::Status;

TEST_CASE("a completion is not done until it is finished, and then for ever", "[runtime][unit]") {
  Completion completion;
  CHECK_FALSE(completion.done());
  CHECK_FALSE(completion.wait(std::chrono::duration<double>(0)));
  CHECK(completion.result().bytes.get() == nullptr);
  completion.finish(Status(Errc::kTimeout, "late"));
  CHECK(completion.done());
  CHECK(completion.wait(std::chrono::duration<double>(0))->message() == "late");
  CHECK(completion.wait(std::nullopt)->code() == Errc::kTimeout);
}

TEST_CASE("a waiting thread wakes when the operation is finished, with its result", "[runtime][unit]") {
  Completion completion;
  Status seen(Errc::kBug, "not woken");
  std::thread waiter([&] { seen = completion.wait(std::chrono::duration<double>(1e300)).value_or(seen); });
  Buffer bytes(2);
  const void* address = bytes.get();
  completion.finish({}, {{2, 1}, address, std::move(bytes), {}});
  waiter.join();
  CHECK(seen.ok());
  CHECK(completion.result().bytes.get() == address);
  CHECK(completion.result().shape == Shape{2, 1});
}

TEST_CASE("who asks to be told is told once, with the outcome there, also when it asks late", "[runtime][unit]") {
  Completion completion;
  int told = 0;
  const auto tell = [&] { told += completion.done() && completion.wait(std::nullopt)->code() == Errc::kTimeout; };
  completion.on_finish(tell);
  CHECK_THROWS_WITH(completion.on_finish(tell), "the operation has a callback already");
  CHECK(told == 0);
  completion.finish(Status(Errc::kTimeout, "late"));
  CHECK(told == 1);
  completion.on_finish(tell);
  CHECK(told == 2);
}

TEST_CASE("handles are positive, never used twice, and gone after release", "[runtime][unit]") {
  HandleTable table;
  const auto completion = std::make_shared<Completion>();
  const auto first = table.add(completion), second = table.add(completion);
  CHECK(first > 0);
  CHECK(second > first);
  CHECK(table.find(first) == completion);
  CHECK(table.owner(first) == nullptr);
  table.release(first);
  CHECK(table.find(first) == nullptr);
  table.release(first);
  table.release(12345);
  CHECK(table.add(completion) > second);
  CHECK(table.find(0) == nullptr);
}
