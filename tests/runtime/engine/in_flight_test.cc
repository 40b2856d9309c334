#include "runtime/engine/in_flight.hpp"

#include "tests/catch.hpp"

using namespace runjob::runtime;
using runjob::Status;

namespace {

Submission named(const std::string& name) {
  Submission submission;
  submission.name = name;
  return submission;
}

}  // namespace

TEST_CASE("operations in flight are found by name until they are taken", "[runtime][unit]") {
  InFlight operations;
  CHECK(operations.empty());
  const auto completion = operations.insert(named("x"));
  CHECK(operations.contains("x"));
  CHECK_FALSE(operations.contains("y"));
  CHECK(operations.find("x")->completion == completion);
  CHECK(operations.find("y") == nullptr);
  CHECK(operations.take("x").mapped().submission.name == "x");
  CHECK_FALSE(operations.take("x"));
  CHECK(operations.empty());
}

TEST_CASE("an operation whose input a round may read is not taken with those that wait", "[runtime][unit]") {
  InFlight operations;
  operations.insert(named("x"));
  operations.insert(named("y"));
  operations.find("x")->is_lent = true;
  const std::vector<InFlight::Taken> waiting = operations.take_waiting();
  REQUIRE(waiting.size() == 1);
  CHECK(waiting[0].key() == "y");
  operations.give_back(operations.take("x"));
  operations.insert(named("z"));
  CHECK_FALSE(operations.find("z")->is_lent);
}

TEST_CASE("an operation has the memory of one that was given back, and values of its own", "[runtime][unit]") {
  InFlight operations;
  Submission first = named("a name that needs memory of its own");
  first.signature = {.kind = Kind::kAlltoall,
                     .shape = {1, 2, 3},
                     .splits = {1},
                     .group = {{}},
                     .obstacle = Status(runjob::Errc::kBug, "why")};
  first.output_bytes = 8;
  first.group = {{}};
  operations.insert(std::move(first));
  InFlight::Entry* const place = operations.find("a name that needs memory of its own");
  operations.set_running(*place);
  place->result.shape = {4};
  const std::shared_ptr<Completion> old = place->completion;
  operations.give_back(operations.take("a name that needs memory of its own"));

  const std::int64_t extent = 5;
  SubmissionView second;
  second.name = "b";
  second.signature.kind = Kind::kAllreduce;
  second.signature.shape = {&extent, 1};
  const std::shared_ptr<Completion> completion = operations.insert(operations.make(to_submission(second)));
  CHECK(completion != old);
  const InFlight::Entry* const entry = operations.find("b");
  REQUIRE(entry != nullptr);
  if (runjob::kKeepsMemory) CHECK(entry == place);
  CHECK(entry->completion == completion);
  CHECK(entry->submission.name == "b");
  CHECK(entry->submission.signature == Signature{.kind = Kind::kAllreduce, .shape = {5}});
  CHECK(entry->submission.output_bytes == 0);
  CHECK(entry->submission.group.empty());
  CHECK(entry->result.shape.empty());
  CHECK_FALSE(entry->running);
}

TEST_CASE("what runs is counted once and stays when the others are taken", "[runtime][unit]") {
  InFlight operations;
  for (const char* name : {"a", "b", "c"}) operations.insert(named(name));
  InFlight::Entry& running = *operations.find("b");
  operations.set_running(running);
  operations.set_running(running);
  CHECK(operations.running() == 1);
  CHECK(operations.take_waiting().size() == 2);
  CHECK(operations.find("b") == &running);
  operations.set_done(running);
  operations.set_done(running);
  CHECK(operations.running() == 0);
  operations.set_running(running);
  CHECK(operations.take("b"));
  CHECK(operations.running() == 0);
  operations.insert(named("d"));
  CHECK(operations.take_all().size() == 1);
  CHECK(operations.empty());
}
