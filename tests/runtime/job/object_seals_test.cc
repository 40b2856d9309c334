#include "runtime/job/object_seals.hpp"

#include "tests/catch.hpp"

using namespace runjob;
using namespace runjob::runtime;

namespace {

Secret key_of(unsigned char byte) {
  Secret key;
  key.bytes().fill(byte);
  return key;
}

}  // namespace

TEST_CASE("a proof is of this object, this call and this sender only", "[runtime][unit]") {
  const ObjectSeals seals(key_of(1)), same(key_of(1)), other(key_of(2));
  const auto proof = seals.proof("model", 0, 3, 5, "object");
  CHECK(proof == same.proof("model", 0, 3, 5, "object"));
  CHECK(proof != other.proof("model", 0, 3, 5, "object"));
  CHECK(proof != seals.proof("model", 0, 3, 5, "Object"));
  CHECK(proof != seals.proof("model", 0, 3, 6, "object"));
  CHECK(proof != seals.proof("model", 0, 2, 5, "object"));
  CHECK(proof != seals.proof("model", 1, 3, 5, "object"));
  CHECK(proof != seals.proof("modelo", 0, 3, 5, "bject"));
}

TEST_CASE("calls are counted by name and process set", "[runtime][unit]") {
  ObjectSeals seals(key_of(1));
  CHECK(seals.next_number("a", 0) == 0);
  CHECK(seals.next_number("a", 0) == 1);
  CHECK(seals.next_number("b", 0) == 0);
  CHECK(seals.next_number("a", 1) == 0);
}

TEST_CASE("a process set with the number of a removed one counts anew, with other numbers", "[runtime][unit]") {
  ObjectSeals in_both(key_of(1)), in_second(key_of(1));
  const auto number = in_both.next_number("a", 1);
  in_both.next_number("a", 12);
  in_both.begin_set(1);
  in_second.begin_set(1);
  const auto first = in_both.next_number("a", 1), second = in_both.next_number("a", 1);
  CHECK(first != number);
  CHECK(second == first + 1);
  CHECK(in_second.next_number("a", 1) == first);
  CHECK(in_second.next_number("a", 1) == second);
  CHECK(in_both.next_number("a", 12) == 1);
}
