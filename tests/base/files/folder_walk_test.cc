#include "base/files/folder_walk.hpp"

#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/error.hpp"
#include "tests/catch.hpp"
#include "tests/shared_folder.hpp"

using namespace runjob;
namespace fs = std::filesystem;

namespace {

/// Goes to `path` and makes the folder `mark` there.
void mark(const fs::path& path, FolderWalk::Missing missing = FolderWalk::Missing::kError) {
  FolderWalk walk("cannot mark");
  walk.enter(path.string(), missing);
  REQUIRE(::mkdirat(walk.folder(), "mark", 0777) == 0);
}

}  // namespace

TEST_CASE("a walk follows folders, one's own links and root's, and makes what is missing", "[unit]") {
  const SharedFolder shared;
  shared.run("mkdir real; ln -s real own; ln -s $PWD/own absolute; ln -s ../../$(basename $PWD)/real real/up");
  mark(shared.path / "absolute");
  CHECK(fs::exists(shared.path / "real/mark"));
  fs::remove(shared.path / "real/mark");
  mark(shared.path / "own/./up//");
  CHECK(fs::exists(shared.path / "real/mark"));
  mark(shared.path / "own/new/below/..", FolderWalk::Missing::kMake);
  CHECK(fs::exists(shared.path / "real/new/mark"));
  CHECK(fs::exists(shared.path / "real/new/below"));
  const UniqueFd opened(::open((shared.path / "real/new/below").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  mark(fmt::format("/proc/self/fd/{}", opened.get()));
  CHECK(fs::exists(shared.path / "real/new/below/mark"));
}

TEST_CASE("a walk that cannot go on has the action and the system's reason", "[unit]") {
  const SharedFolder shared;
  shared.run("touch file; ln -s circle circle");
  CHECK_THROWS_WITH(mark(shared.path / "missing"), "cannot mark: No such file or directory");
  CHECK_THROWS_WITH(mark(shared.path / "file/below"), "cannot mark: Not a directory");
  CHECK_THROWS_WITH(mark(shared.path / "circle"), "cannot mark: Too many levels of symbolic links");
}

TEST_CASE("another user's link is not followed below a folder that others may write to", "[unit]") {
  if (::getuid() != 0) {
    WARN("skipped: another user needs root");
    return;
  }
  const SharedFolder shared;
  const std::string path = shared.path.string();
  shared.run("mkdir ours closed; chmod 0755 ours closed");
  shared.other_user("ln -s ours link; mkdir his; ln -s ../ours his/link");
  const auto reason = [&path](const char* link) {
    return fmt::format(
        "cannot mark: the link {}/{} belongs to user 65534, and not to user 0; name the folder to which "
        "it leads",
        path, link);
  };
  CHECK_THROWS_WITH(mark(shared.path / "link"), reason("link"));
  CHECK_THROWS_WITH(mark(shared.path / "link/new", FolderWalk::Missing::kMake), reason("link"));
  CHECK_THROWS_WITH(mark(shared.path / "his/link"), reason("his/link"));
  shared.run("ln -s link/below ours-to-his");
  CHECK_THROWS_WITH(mark(shared.path / "ours-to-his"), reason("link"));
  CHECK(fs::is_empty(shared.path / "ours"));
}

TEST_CASE("where nobody else may write, a link is followed whoever it belongs to", "[unit]") {
  if (::getuid() != 0) {
    WARN("skipped: another user needs root");
    return;
  }
  const std::string folder = fmt::format("/root/runjob-folder-walk-{}", ::getpid());
  fs::create_directories(folder + "/real");
  fs::create_symlink("real", folder + "/link");
  REQUIRE(::lchown((folder + "/link").c_str(), 65534, 65534) == 0);
  CHECK_NOTHROW(mark(folder + "/link"));
  fs::remove_all(folder);
}
