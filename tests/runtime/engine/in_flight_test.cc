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
  operations.take("x");
  operations.insert(named("z"));
  CHECK_FALSE(operations.find("z")->is_lent);
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
