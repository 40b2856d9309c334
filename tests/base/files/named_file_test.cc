#include "base/files/named_file.hpp"

#include <filesystem>
#include <fstream>
#include <unistd.h>

#include <fmt/format.h>

#include "base/error.hpp"
#include "tests/catch.hpp"
#include "tests/shared_folder.hpp"

using namespace runjob;
namespace fs = std::filesystem;

namespace {

void write_named(const SharedFolder& folder, const char* name, std::string_view text) {
  write(open_named_file((folder.path / name).string(), "--status-file"), text);
}

}  // namespace

TEST_CASE("a file of one's own is made, emptied, and followed to where one's own link leads", "[unit]") {
  const SharedFolder shared;
  write_named(shared, "status", "the first one, which is longer");
  write_named(shared, "status", "second");
  CHECK(shared.text("status") == "second");
  shared.run("mkdir below; ln -s below/target link; ln -s $PWD/below/absolute below/again");
  write_named(shared, "link", "linked");
  CHECK(shared.text("below/target") == "linked");
  write_named(shared, "below/again", "too");
  CHECK(shared.text("below/absolute") == "too");
  CHECK_NOTHROW(open_named_file("/dev/null", "--status-file"));
  write(open_named_file((shared.path / "status").string(), "--status-file", Existing::kContinue), " third");
  CHECK(shared.text("status") == "second third");
  CHECK_NOTHROW(open_named_file("/dev/stdout", "--status-file"));
  CHECK_THROWS_WITH(open_named_file(shared.path.string(), "--status-file"),
                    fmt::format("--status-file: cannot create '{}': Is a directory", shared.path.string()));
}

TEST_CASE("what another user has put there first is not written to, with its owner and the remedy", "[unit]") {
  if (::getuid() != 0) {
    WARN("skipped: another user needs root");
    return;
  }
  const SharedFolder shared;
  std::ofstream(shared.path / "ours") << "precious";
  const std::string start = fmt::format("--status-file: cannot create '{}/status': ", shared.path.string());
  const std::string end = " there belongs to user 65534, and not to user 0; remove it, or name another file";
  SECTION("a link to a file of ours") {
    shared.other_user("ln -s ours status");
    CHECK_THROWS_WITH(write_named(shared, "status", "x"), start + "the link" + end);
  }
  SECTION("a file, in which he would read it") {
    shared.other_user("touch status");
    CHECK_THROWS_WITH(write_named(shared, "status", "x"), start + "the file" + end);
  }
  SECTION("a pipe, at which nobody reads") {
    shared.other_user("mkfifo status");
    CHECK_THROWS_WITH(write_named(shared, "status", "x"), start + "the file" + end);
  }
  CHECK(shared.text("ours") == "precious");
}

TEST_CASE("a link of another user on the way to the file is not followed", "[unit]") {
  if (::getuid() != 0) {
    WARN("skipped: another user needs root");
    return;
  }
  const SharedFolder shared;
  shared.run("mkdir -m 0755 ours; echo -n precious > ours/status");
  shared.other_user("ln -s ours middle");
  CHECK_THROWS_WITH(write_named(shared, "middle/status", "x"),
                    fmt::format("--status-file: cannot create '{0}/middle/status': the link {0}/middle belongs to user "
                                "65534, and not to user 0; name the folder to which it leads",
                                shared.path.string()));
  shared.run("ln -s middle/status own");
  CHECK_THROWS_WITH(write_named(shared, "own", "x"), ContainsSubstring("the link " + shared.path.string() + "/middle"));
  CHECK(shared.text("ours/status") == "precious");
}
