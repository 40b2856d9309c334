#include "runtime/c_status.hpp"

#include <thread>

#include "tests/catch.hpp"

using namespace runjob::runtime;
using runjob::Errc;
using runjob::Error;
using runjob::Status;

TEST_CASE("every failure has a code, and its text is kept until the next failure", "[runtime][unit]") {
  CHECK(guarded([] { return Status(Errc::kPeerLost, "rank 1 is gone"); }) == RUNJOB_PEER_LOST);
  CHECK(last_message() == std::string("rank 1 is gone"));
  CHECK(guarded([]() -> Status { throw Error(Errc::kUsage, "no"); }) == RUNJOB_INVALID_ARGUMENT);
  CHECK(last_message() == std::string("no"));
  CHECK(guarded([]() -> Status { throw std::runtime_error("what"); }) == RUNJOB_INTERNAL);
  CHECK(last_message() == std::string("what"));
  CHECK(guarded([] { return Status(); }) == RUNJOB_OK);
  CHECK(last_message() == std::string("what"));
}

TEST_CASE("kinds of failure that C does not tell apart share a code", "[runtime][unit]") {
  using Pair = std::pair<Errc, runjob_code>;
  const auto [kind, code] =
      GENERATE(Pair{Errc::kHostfile, RUNJOB_INVALID_ARGUMENT}, Pair{Errc::kAuth, RUNJOB_CONNECT},
               Pair{Errc::kTimeout, RUNJOB_TIMEOUT}, Pair{Errc::kMismatch, RUNJOB_MISMATCH},
               Pair{Errc::kAborted, RUNJOB_ABORTED}, Pair{Errc::kDevice, RUNJOB_UNAVAILABLE},
               Pair{Errc::kNotInitialized, RUNJOB_NOT_INITIALIZED}, Pair{Errc::kBug, RUNJOB_INTERNAL});
  CHECK(report(Status(kind, "x")) == code);
}

TEST_CASE("each thread has a text of its own", "[runtime][unit]") {
  report(Status(Errc::kBug, "mine"));
  std::thread([] { report(Status(Errc::kBug, "theirs")); }).join();
  CHECK(last_message() == std::string("mine"));
}
