#include "base/files/trusted_file.hpp"

#include <array>
#include <cstdint>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/error.hpp"
#include "tests/catch.hpp"
#include "tests/shared_folder.hpp"

using namespace runjob;

namespace {

constexpr ::uid_t kNobody = 65534;
const std::string kWritable = "others may write to it; chmod go-w f";

/// A file in a folder of its own.
struct File {
  struct ::stat info() const {
    struct ::stat found {};
    REQUIRE(::fstat(opened.get(), &found) == 0);
    return found;
  }
  std::string reason(::mode_t mode) const {
    REQUIRE(::fchmod(opened.get(), mode) == 0);
    return reason_to_distrust(opened.get(), info(), "f");
  }
  std::string reason_of_ssh(::mode_t mode) const {
    REQUIRE(::fchmod(opened.get(), mode) == 0);
    return reason_ssh_distrusts(info(), "f");
  }
  void give_to(::uid_t user, ::gid_t group) const { REQUIRE(::fchown(opened.get(), user, group) == 0); }

  SharedFolder folder;
  UniqueFd opened{::open((folder.path / "f").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)};
};

bool is_root() {
  if (::getuid() == 0) return true;
  WARN("skipped: files of other users and groups need root");
  return false;
}

}  // namespace

TEST_CASE("a file is trusted if nobody else may write to it", "[unit]") {
  const File file;
  CHECK(file.reason(0600).empty());
  CHECK(file.reason(0644).empty());
  CHECK(file.reason(0602) == kWritable);
  CHECK(file.reason_of_ssh(0644).empty());
  CHECK(file.reason_of_ssh(0602) == kWritable);
}

TEST_CASE("a file of another user is not trusted, and one of root is", "[unit]") {
  if (!is_root()) return;
  const File file;
  file.give_to(kNobody, kNobody);
  CHECK(file.reason(0600) == "it belongs to user 65534; make a copy of your own: cp f COPY");
  CHECK(file.reason_of_ssh(0600) == "it belongs to user 65534; make one of your own");
  CHECK(reason_others_may_write(file.opened.get(), file.info(), "f").empty());
  CHECK_THROWS_WITH(require_trusted(file.opened.get(), file.info(), "f", "-x"),
                    "-x: bad owner or permissions on f: it belongs to user 65534; make a copy of your own: cp f COPY");
}

TEST_CASE("a group that has only the user as its member is nobody else, but for SSH", "[unit]") {
  if (!is_root()) return;
  const File file;  // of root, whose group has no other member
  CHECK(file.reason(0664).empty());
  CHECK(file.reason_of_ssh(0664) == kWritable);
  file.give_to(0, 100);  // `users`
  CHECK(file.reason(0664) == kWritable);
  file.give_to(kNobody, 0);
  CHECK(file.reason(0664).starts_with("it belongs to user 65534"));
  CHECK(reason_others_may_write(file.opened.get(), file.info(), "f").empty());
}

TEST_CASE("an access control list gives the group's bits to others", "[unit]") {
  if (!is_root()) return;
  const File file;
  struct Entry {  // linux/posix_acl_xattr.h
    std::uint16_t tag, rights;
    std::uint32_t user;
  };
  constexpr std::uint32_t kNone = 0xffffffff;
  struct {
    std::uint32_t version = 2;
    std::array<Entry, 5> entries{{{1, 6, kNone}, {2, 6, kNobody}, {4, 4, kNone}, {16, 6, kNone}, {32, 4, kNone}}};
  } list;
  if (::fsetxattr(file.opened.get(), "system.posix_acl_access", &list, sizeof list, 0) != 0) {
    WARN("skipped: the file system has no access control lists");
    return;
  }
  CHECK(file.reason(0664) == kWritable);
  CHECK(file.reason(0644).empty());
}

TEST_CASE("a device is trusted by its owner, whatever others may write to it", "[unit]") {
  const UniqueFd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  struct ::stat info {};
  REQUIRE(::fstat(null.get(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0666);
  CHECK(reason_to_distrust(null.get(), info, "f").empty());
}

TEST_CASE("a pipe of this user is trusted", "[unit]") {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const UniqueFd out(ends[0]), in(ends[1]);
  struct ::stat info {};
  REQUIRE(::fstat(out.get(), &info) == 0);
  CHECK(reason_to_distrust(out.get(), info, "f").empty());
}
