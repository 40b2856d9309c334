#include <array>
#include <cstring>
#include <runjob/runjob.h>

#include "tests/catch.hpp"

namespace {

using Proof = std::array<unsigned char, RUNJOB_PROOF_BYTES>;

Proof proof_of(const char* text, std::int64_t number) {
  Proof proof{};
  REQUIRE(runjob_object_proof("model", 0, 0, number, text, std::strlen(text), proof.data()) == RUNJOB_OK);
  return proof;
}

}  // namespace

TEST_CASE("a proof is of one object in one call, and without a job there is none", "[runtime]") {
  std::int64_t first = -1, second = -1;
  CHECK(runjob_object_number("model", 0, &first) == RUNJOB_NOT_INITIALIZED);
  REQUIRE(runjob_init() == RUNJOB_OK);
  REQUIRE(runjob_object_number("model", 0, &first) == RUNJOB_OK);
  REQUIRE(runjob_object_number("model", 0, &second) == RUNJOB_OK);
  CHECK(second == first + 1);
  CHECK(proof_of("weights", first) == proof_of("weights", first));
  CHECK(proof_of("weights", first) != proof_of("weights", second));
  CHECK(proof_of("weights", first) != proof_of("Weights", first));
  REQUIRE(runjob_shutdown() == RUNJOB_OK);
  Proof proof{};
  CHECK(runjob_object_proof("model", 0, 0, 0, "", 0, proof.data()) == RUNJOB_NOT_INITIALIZED);
}
