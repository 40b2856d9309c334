#include "runtime/mpi_start/host_identity.hpp"

#include "tests/catch.hpp"

using namespace runjob::runtime;

TEST_CASE("a host has one identity and a name", "[mpi_start][unit]") {
  CHECK(host_identity() == host_identity());
  CHECK_THAT(host_identity(), ContainsSubstring(" network "));
  CHECK_FALSE(host_name().empty());
}
