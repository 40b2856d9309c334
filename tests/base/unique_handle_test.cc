#include "base/unique_handle.hpp"

#include <fcntl.h>

#include "tests/catch.hpp"

using runjob::UniqueFd;

namespace {
bool is_open(int fd) {
  return ::fcntl(fd, F_GETFD) != -1;
}
}  // namespace

TEST_CASE("a handle is closed once, by its last owner", "[unit]") {
  UniqueFd first(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const int fd = first.get();
  REQUIRE(is_open(fd));
  UniqueFd second = std::move(first);
  CHECK(second.get() == fd);
  CHECK(is_open(fd));
  second.reset();
  CHECK_FALSE(is_open(fd));
  CHECK_FALSE(second);
}

TEST_CASE("a released handle stays open", "[unit]") {
  UniqueFd owner(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const int fd = owner.release();
  owner.reset();
  REQUIRE(is_open(fd));
  ::close(fd);
}
