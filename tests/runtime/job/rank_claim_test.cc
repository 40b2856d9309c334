#include "runtime/job/rank_claim.hpp"

#include <optional>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/error.hpp"
#include "tests/catch.hpp"
#include "tests/shared_folder.hpp"

using namespace runjob;
using namespace runjob::runtime;

namespace {

/// What a child of this process gets when it claims the rank: its exit status is 0 when it may be the rank.
int claim_in_child(const std::string& folder, int rank, const std::string& expected = "") {
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      const RankClaim claim(folder, rank);
      ::_exit(0);
    } catch (const Error& error) {
      ::_exit(std::string(error.what()).starts_with(expected) ? 3 : 4);
    }
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

TEST_CASE("one process at a time is a rank, and another one learns which", "[unit]") {
  const SharedFolder shared;
  const std::string folder = shared.path.string();
  std::optional<RankClaim> claim(std::in_place, folder, 2);
  CHECK(claim_in_child(folder, 2, fmt::format("rank 2 is in the job already: it is process {}. ", ::getpid())) == 3);
  CHECK(claim_in_child(folder, 1) == 0);
  claim.reset();
  CHECK(claim_in_child(folder, 2) == 0);
  CHECK_NOTHROW(RankClaim(folder, 2));  // the child has ended
}

TEST_CASE("without a folder every process may be the rank", "[unit]") {
  const RankClaim none("", 0), nowhere("/nonexistent", 0);
  CHECK(claim_in_child("", 0) == 0);
}
