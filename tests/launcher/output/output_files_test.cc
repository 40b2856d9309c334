#include "launcher/output/output_files.hpp"

#include <filesystem>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/error.hpp"
#include "tests/catch.hpp"
#include "tests/shared_folder.hpp"

using namespace runjob;
namespace fs = std::filesystem;

TEST_CASE("a file of an earlier job is replaced", "[unit]") {
  const SharedFolder shared;
  const OutputFiles files((shared.path / "a" / "b").string());
  write(files.create("rank.0", "stdout"), "the first job, which wrote more");
  write(files.create("rank.0", "stdout"), "second");
  CHECK(shared.text("a/b/rank.0/stdout") == "second");
}

TEST_CASE("what another user has put there first is not written to", "[unit]") {
  if (::getuid() != 0) {
    WARN("skipped: another user needs root");
    return;
  }
  const SharedFolder shared;
  std::ofstream(shared.path / "ours") << "precious";
  fs::create_directory(shared.path / "folder of ours");
  const OutputFiles files(shared.path.string());
  const std::string start = fmt::format("--output-filename: cannot use {}/rank.0: ", shared.path.string());
  SECTION("a folder with a link in it") {
    shared.other_user("mkdir rank.0; ln -s ../ours rank.0/stdout");
    CHECK_THROWS_WITH(files.create("rank.0", "stdout"),
                      start + "it belongs to user 65534, and not to user 0; remove it, or name another folder");
  }
  SECTION("a link to a folder of ours") {
    shared.other_user("ln -s \"folder of ours\" rank.0");
    CHECK_THROWS_WITH(files.create("rank.0", "stdout"),
                      start + "it is a link or a file; remove it, or name another folder");
  }
  SECTION("a link in our own folder, to which he may write") {
    fs::create_directory(shared.path / "rank.0");
    REQUIRE(::chmod((shared.path / "rank.0").c_str(), 0777) == 0);
    shared.other_user("ln -s ../ours rank.0/stdout");
    write(files.create("rank.0", "stdout"), "output");
    CHECK(shared.text("rank.0/stdout") == "output");
  }
  CHECK(shared.text("ours") == "precious");
  CHECK(fs::is_empty(shared.path / "folder of ours"));
}
