#include "launcher/channel/exception_message.hpp"

#include <stdexcept>

#include "tests/catch.hpp"

using namespace runjob;

TEST_CASE("an exception that ended a coroutine gives its message", "[unit]") {
  CHECK(exception_message(std::make_exception_ptr(std::runtime_error("the reason"))) == "the reason");
  CHECK_FALSE(exception_message(nullptr));
  CHECK_THROWS_AS(exception_message(std::make_exception_ptr(7)), int);
}
