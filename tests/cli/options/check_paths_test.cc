#include "cli/options/check_paths.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.hpp"
#include "tests/catch.hpp"

using namespace runjob;
namespace fs = std::filesystem;

TEST_CASE("paths are checked before a job starts, and nothing is made", "[unit]") {
  std::string root = (fs::temp_directory_path() / "runjob-paths-XXXXXX").string();
  REQUIRE(::mkdtemp(root.data()) != nullptr);
  const std::string file = root + "/file";
  std::ofstream(file) << "x";

  CHECK_NOTHROW(check_directory(root, "--wdir"));
  CHECK_THROWS_WITH(check_directory(root + "/no", "--wdir"),
                    "--wdir: " + root + "/no: No such file or directory; name a directory that exists");
  CHECK_THROWS_WITH(check_directory(file, "--wdir"),
                    "--wdir: " + file + " is not a directory; name a directory that exists");

  CHECK_NOTHROW(check_readable_file(file, "-i"));
  CHECK_THROWS_WITH(check_readable_file(root, "-i"), "-i: " + root + " is a directory; name a file that can be read");
  CHECK_THROWS_WITH(check_readable_file(root + "/no", "-i"),
                    "-i: " + root + "/no: No such file or directory; name a file that can be read");

  CHECK_NOTHROW(check_writable_file(file, "--status-file"));
  CHECK_NOTHROW(check_writable_file(root + "/new", "--status-file"));
  CHECK_THROWS_WITH(check_writable_file(root, "--status-file"),
                    "--status-file: " + root + " is a directory; name a file");
  CHECK_THROWS_WITH(check_writable_file(root + "/no/new", "--status-file"),
                    "--status-file: the directory " + root + "/no does not exist; make it first");
  CHECK_NOTHROW(check_output_directory(root, "--output-filename"));
  CHECK_NOTHROW(check_output_directory(root + "/a/b", "--output-filename"));
  CHECK_THROWS_WITH(
      check_output_directory(file + "/a", "--output-filename"),
      "--output-filename: " + file + " is not a directory; name a directory that can be made and written");
  CHECK_NOTHROW(check_own_directory(root, "--commit-dir"));
  CHECK_NOTHROW(check_own_directory(root + "/new", "--commit-dir"));
  fs::create_symlink(root, root + "/link");
  CHECK_THROWS_WITH(check_own_directory(root + "/link", "--commit-dir"),
                    "--commit-dir: " + root + "/link is a link; name a directory of your own");
  CHECK_THROWS_WITH(check_own_directory(file, "--commit-dir"),
                    "--commit-dir: " + file + " is not a directory; name a directory of your own");
  CHECK_THROWS_WITH(check_own_directory(file + "/new", "--commit-dir"),
                    "--commit-dir: " + file + "/new lies below a file; name a directory of your own");
  REQUIRE(::chmod(root.c_str(), 0707) == 0);
  CHECK_THROWS_WITH(check_own_directory(root, "--commit-dir"),
                    "--commit-dir: " + root + ": others may write to it; chmod go-w " + root);
  if (::geteuid() == 0) {
    REQUIRE(::chown(root.c_str(), 65534, static_cast<gid_t>(-1)) == 0);
    CHECK_THROWS_WITH(
        check_own_directory(root, "--commit-dir"),
        "--commit-dir: " + root + " belongs to user 65534, and not to user 0; name a directory of your own");
  }
  CHECK_FALSE(fs::exists(root + "/new"));
  CHECK_FALSE(fs::exists(root + "/a"));
  fs::remove_all(root);
}
