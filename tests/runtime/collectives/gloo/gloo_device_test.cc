#include "runtime/collectives/gloo/gloo_device.hpp"

#include "tests/catch.hpp"

using namespace runjob::runtime;

TEST_CASE("a device is made for a numeric address of this host only", "[runtime][net]") {
  CHECK(make_gloo_device("127.0.0.1") != nullptr);
  CHECK_THROWS_WITH(make_gloo_device("no such host"), "'no such host' is no numeric address");
}
