#include "runtime/life/goodbye.hpp"

#include "tests/catch.hpp"

using namespace runjob;
using namespace runjob::runtime;

namespace {

const std::string kSelf = "rank 0 on a", kOperation = "allreduce 'x'";

}  // namespace

TEST_CASE("the goodbye of another rank gets the operation that waits for it, and a hint", "[runtime][unit]") {
  const std::string wait =
      " while rank 0 on a waits in allreduce 'x': do all ranks take the same number of steps? see join()";
  const Status ended = with_operation(goodbye_reason("rank 1 on b", Goodbye::kProgramEnd), kSelf, kOperation);
  CHECK(ended.code() == Errc::kAborted);
  CHECK(ended.message() == "rank 1 on b ended its program" + wait);
  CHECK(with_operation(goodbye_reason("rank 1 on b", Goodbye::kShutdown), kSelf, kOperation).message() ==
        "rank 1 on b called shutdown()" + wait);
}

TEST_CASE("a rank's own goodbye and every failure keep their text", "[runtime][unit]") {
  for (const Status& reason :
       {goodbye_reason(kSelf, Goodbye::kShutdown), goodbye_reason(kSelf, Goodbye::kProgramEnd),
        Status(Errc::kAborted, "process set 2 was removed"), Status(Errc::kPeerLost, "rank 1 on b called shutdown()"),
        Status(Errc::kPeerLost, "rank 1 on b failed: ValueError: x")}) {
    CHECK(with_operation(reason, kSelf, kOperation).message() == reason.message());
  }
  const Status once = with_operation(goodbye_reason("rank 1 on b", Goodbye::kShutdown), kSelf, kOperation);
  CHECK(with_operation(once, kSelf, "broadcast 'y'").message() == once.message());
}

TEST_CASE("a goodbye is told from a failure", "[runtime][unit]") {
  CHECK(is_goodbye(goodbye_reason("rank 1 on b", Goodbye::kShutdown)));
  CHECK(is_goodbye(goodbye_reason("rank 1 on b", Goodbye::kProgramEnd)));
  CHECK_FALSE(is_goodbye(Status()));
  CHECK_FALSE(is_goodbye({Errc::kPeerLost, "rank 1 on b called shutdown()"}));
  CHECK_FALSE(is_goodbye({Errc::kAborted, "process set 2 was removed"}));
}
