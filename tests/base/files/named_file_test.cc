#include "base/files/named_file.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/error.hpp"
#include "tests/catch.hpp"

using namespace runjob;
namespace fs = std::filesystem;

namespace {

/// A folder that everybody may write to.
class SharedFolder {
 public:
  SharedFolder() {
    std::string name = "/tmp/runjob-named-file-XXXXXX";
    path = ::mkdtemp(name.data());
    REQUIRE(::chmod(path.c_str(), 0777) == 0);
  }
  ~SharedFolder() { fs::remove_all(path); }

  void run(const std::string& command, const std::string& user = "") const {
    const std::string line = fmt::format("cd {} && {} sh -c '{}'", path.string(), user, command);
    REQUIRE(std::system(line.c_str()) == 0);
  }
  void other_user(const std::string& command) const {
    run(command, "setpriv --reuid=65534 --regid=65534 --clear-groups");
  }
  std::string text(const char* name) const {
    std::ostringstream text;
    text << std::ifstream(path / name).rdbuf();
    return text.str();
  }
  void write(const char* name, std::string_view text) const {
    const UniqueFd file = open_named_file((path / name).string(), "--status-file");
    REQUIRE(::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  }

  fs::path path;
};

}  // namespace

TEST_CASE("a file of one's own is made, emptied, and followed to where one's own link leads", "[unit]") {
  const SharedFolder shared;
  shared.write("status", "the first one, which is longer");
  shared.write("status", "second");
  CHECK(shared.text("status") == "second");
  shared.run("mkdir below; ln -s below/target link; ln -s $PWD/below/absolute below/again");
  shared.write("link", "linked");
  CHECK(shared.text("below/target") == "linked");
  shared.write("below/again", "too");
  CHECK(shared.text("below/absolute") == "too");
  CHECK_NOTHROW(open_named_file("/dev/null", "--status-file"));
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
    CHECK_THROWS_WITH(shared.write("status", "x"), start + "the link" + end);
  }
  SECTION("a file, in which he would read it") {
    shared.other_user("touch status");
    CHECK_THROWS_WITH(shared.write("status", "x"), start + "the file" + end);
  }
  SECTION("a pipe, at which nobody reads") {
    shared.other_user("mkfifo status");
    CHECK_THROWS_WITH(shared.write("status", "x"), start + "the file" + end);
  }
  CHECK(shared.text("ours") == "precious");
}
