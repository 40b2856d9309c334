#include "base/error.hpp"

#include <cerrno>
#include <set>
#include <string>

#include "base/status.hpp"
#include "tests/catch.hpp"

using runjob::Errc;
using runjob::Error;
using runjob::Status;

TEST_CASE("every kind of error has a name of its own", "[unit]") {
  std::set<std::string> names;
  for (int code = 0; code <= static_cast<int>(Errc::kBug); ++code) {
    const std::string name(runjob::to_string(static_cast<Errc>(code)));
    CHECK_FALSE(name.empty());
    CHECK(names.insert(name).second);
  }
  CHECK(runjob::to_string(Errc::kPeerLost) == "peer lost");
}

TEST_CASE("a system error says what was tried and what came back", "[unit]") {
  const Error error = runjob::system_error("open /nowhere", ENOENT);
  CHECK(error.code() == Errc::kSystem);
  CHECK(std::string(error.what()) == "open /nowhere: No such file or directory");
}

TEST_CASE("a status is ok until it is given an error, and then throws it", "[unit]") {
  CHECK(Status().ok());
  CHECK_NOTHROW(Status().throw_if_failed());

  const Status failed(Error(Errc::kTimeout, "rank 3 did not come"));
  CHECK_FALSE(failed.ok());
  CHECK(failed.code() == Errc::kTimeout);
  CHECK_THROWS_WITH(failed.throw_if_failed(), "rank 3 did not come");
}
