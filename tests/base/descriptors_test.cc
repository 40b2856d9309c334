#include "base/descriptors.hpp"

#include <algorithm>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/unique_handle.hpp"
#include "tests/catch.hpp"

namespace {

bool is_null_device(int descriptor) {
  struct stat info {};
  return ::fstat(descriptor, &info) == 0 && S_ISCHR(info.st_mode) && info.st_rdev == 0x103;  // major 1, minor 3
}

}  // namespace

TEST_CASE("closed standard descriptors become the null device, open ones stay", "[unit]") {
  const pid_t child = ::fork();
  if (child == 0) {
    struct stat before {};
    struct stat after {};
    ::fstat(1, &before);
    ::close(0);
    ::close(2);
    runjob::open_standard_descriptors();
    ::fstat(1, &after);
    ::_exit(is_null_device(0) && is_null_device(2) && before.st_ino == after.st_ino ? 0 : 1);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

TEST_CASE("the open descriptors have each one that is open", "[unit]") {
  runjob::UniqueFd one(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const int number = one.get();
  const auto has = [number](const std::vector<int>& open) {
    return std::find(open.begin(), open.end(), number) != open.end();
  };
  CHECK(has(runjob::open_descriptors()));
}
