#include "runtime/mpi_start/hexadecimal.hpp"

#include "base/error.hpp"
#include "tests/catch.hpp"
#include "tests/thrown.hpp"

using namespace runjob;
using namespace runjob::runtime;

TEST_CASE("any bytes become digits and come back", "[mpi_start][unit]") {
  const std::string bytes("\x00\xff\x10z", 4);
  CHECK(to_hexadecimal(bytes) == "00ff107a");
  CHECK(from_hexadecimal("00ff107a") == bytes);
  CHECK(from_hexadecimal("").empty());
}

TEST_CASE("anything but pairs of digits is refused", "[mpi_start][unit]") {
  for (const char* text : {"0", "0g", "g0", "000", "-1", "+1", " 1"}) {
    CAPTURE(text);
    CHECK(thrown([&] { from_hexadecimal(text); }).first == Errc::kProtocol);
  }
}
