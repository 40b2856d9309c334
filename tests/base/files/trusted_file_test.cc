#include "base/files/trusted_file.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include "tests/catch.hpp"

using namespace runjob;

namespace {

std::string reason(::uid_t owner, ::mode_t mode) {
  struct ::stat info {};
  info.st_uid = owner;
  info.st_mode = S_IFREG | mode;
  return reason_to_distrust(info, "f");
}

}  // namespace

TEST_CASE("a file is trusted if it belongs to this user or to root and nobody else may write to it", "[unit]") {
  CHECK(reason(::getuid(), 0600).empty());
  CHECK(reason(::getuid(), 0644).empty());
  CHECK(reason(0, 0444).empty());
  CHECK(reason(::getuid(), 0620) == "others may write to it; chmod go-w f");
  CHECK(reason(0, 0602) == "others may write to it; chmod go-w f");
  CHECK(reason(::getuid() + 1, 0600) ==
        "it belongs to user " + std::to_string(::getuid() + 1) + "; make one of your own");
}
