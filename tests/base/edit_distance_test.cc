#include "base/edit_distance.hpp"

#include "tests/catch.hpp"

using namespace runjob;

TEST_CASE("edit_distance counts insertions, deletions and substitutions", "[unit]") {
  CHECK(edit_distance("", "") == 0);
  CHECK(edit_distance("abc", "") == 3);
  CHECK(edit_distance("", "abc") == 3);
  CHECK(edit_distance("kitten", "sitting") == 3);
  CHECK(edit_distance("hosts", "hosts") == 0);
  CHECK(edit_distance("hosts", "hsots") == 2);
}

TEST_CASE("nearest finds what was meant, or nothing", "[unit]") {
  const std::vector<std::string> options = {"--hosts", "--hostfile", "--num-proc", "--verbose"};
  CHECK(nearest("--hots", options) == "--hosts");
  CHECK(nearest("--numproc", options) == "--num-proc");
  CHECK(nearest("--elephant", options).empty());
  CHECK(nearest("x", {}).empty());
}
