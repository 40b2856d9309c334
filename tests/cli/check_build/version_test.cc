#include "cli/check_build/version.hpp"

#include "base/version.hpp"
#include "tests/catch.hpp"

TEST_CASE("option --version prints the name and the version", "[unit]") {
  CHECK(runjob::version_text() == std::string("runjob ") + runjob::kVersion + "\n");
  CHECK(runjob::version_text(true) == "0.28.1\n");  // nothing else, as horovodrun
}
