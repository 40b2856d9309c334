#include "runtime/collectives/cuda/flight_record.hpp"

#include "tests/catch.hpp"

using namespace runjob::runtime;
using cuda::FlightRecord;
using Step = FlightRecord::Step;
using Catch::Matchers::EndsWith;
using Catch::Matchers::StartsWith;

TEST_CASE("a flight record names the first operation that is not done, its place and why it waits", "[unit]") {
  FlightRecord record;
  CHECK(record.first_unfinished_text().empty());
  const auto first = record.add("a", Kind::kAllreduce, 0), second = record.add("b", Kind::kAllgather, 3);
  CHECK_THAT(record.first_unfinished_text(), StartsWith("allreduce 'a', operation 1 of 2: submitted "));
  CHECK_THAT(record.first_unfinished_text(), EndsWith("; other ranks have not submitted it"));
  record.reach(first, Step::kDone);
  record.reach(second, Step::kAgreed);
  CHECK_THAT(record.first_unfinished_text(),
             StartsWith("allgather 'b' of process set 3, operation 2 of 2: ") && EndsWith("it has not been launched"));
  record.reach(second, Step::kLaunched);
  CHECK_THAT(record.first_unfinished_text(), EndsWith("the caller's stream is still busy with its input"));
  record.reach(second, Step::kBegun);
  CHECK_THAT(record.first_unfinished_text(),
             ContainsSubstring(", begun ") && EndsWith("the GPU is still busy with it"));
  record.reach(second, Step::kLaunched);  // it has come further
  CHECK(record.first_unfinished().step == Step::kBegun);
  record.reach(second, Step::kDone);
  CHECK(record.first_unfinished_text().empty());
}

TEST_CASE("a flight record keeps the last operations only, and cuts long names", "[unit]") {
  FlightRecord record;
  const auto forgotten = record.add("first", Kind::kAllreduce, 0);
  for (std::size_t i = 0; i < FlightRecord::kKept; ++i) record.add(std::string(500, 'n'), Kind::kAllreduce, 0);
  record.reach(forgotten, Step::kDone);  // its place is another one's
  record.reach(0, Step::kDone);
  CHECK_THAT(record.first_unfinished_text(),
             ContainsSubstring("nnn', operation 2 of 257: ") && !ContainsSubstring(std::string(81, 'n')));
}
