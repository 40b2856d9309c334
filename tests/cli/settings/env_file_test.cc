#include "cli/settings/env_file.hpp"

#include <filesystem>
#include <fstream>

#include "base/error.hpp"
#include "tests/catch.hpp"
#include "tests/shared_folder.hpp"

using namespace runjob;
namespace fs = std::filesystem;

namespace {

Environment parse(std::string_view text, const Environment& environment = {}) {
  Warnings warnings;
  return parse_env_file(text, "f.env", environment, warnings);
}

Environment read(const SharedFolder& folder, Warnings& warnings) {
  return read_env_file({"f.env", "--env-file"}, (folder.path / "f.env").string(), {}, warnings);
}

void make_file(const SharedFolder& folder, fs::perms mode) {
  std::ofstream(folder.path / "f.env") << "A=1\n";
  fs::permissions(folder.path / "f.env", mode);
}

constexpr fs::perms kOwnOnly = fs::perms::owner_read | fs::perms::owner_write;

}  // namespace

TEST_CASE("an environment file has the lines that docker's has", "[unit]") {
  CHECK(parse("A=1\n\n# B=2\n  # C=3\n \t D=x=y \nE=\"q\" # no comment\nF=\nA=2") ==
        Environment{{"A", "2"}, {"D", "x=y "}, {"E", "\"q\" # no comment"}, {"F", ""}});
  CHECK(parse("\xef\xbb\xbf"
              "A=1\r\nB=\r\n") == Environment{{"A", "1"}, {"B", ""}});
  CHECK(parse("").empty());
  CHECK(parse("HOROVOD_CYCLE_TIME=3").size() == 1);
  CHECK(parse("spark.app=1\n") == Environment{{"spark.app", "1"}});
}

TEST_CASE("a name alone in an environment file takes the value that is here", "[unit]") {
  Warnings warnings;
  CHECK(parse_env_file("B\n\nC\n", "f.env", {{"B", "here"}}, warnings) == Environment{{"B", "here"}});
  CHECK(warnings == Warnings{"f.env: line 3: C is not set here, so the ranks do not get it"});
}

TEST_CASE("a line that is not understood is refused with file and line, and without its secrets", "[unit]") {
  for (const char* bad : {"export SECRET=1", "=SECRET", "SEC RET", "SECRET =1", "'SECRET'=1", "SECRET "}) {
    INFO(bad);
    CHECK_THROWS_WITH(parse(std::string("A=1\n\n") + bad + "\nB=2\n"),
                      "f.env: line 3: this is neither NAME=VALUE nor NAME nor a comment after '#'; a NAME has no "
                      "blanks and no quotes");
  }
  CHECK_THROWS_WITH(parse("RUNJOB_RANK=3"), "f.env: line 1: RUNJOB_RANK is set by runjob for each rank; leave it out");
  CHECK_THROWS_WITH(parse(std::string("A=1\nB=2\0", 8)), ContainsSubstring("f.env: line 2: there is a zero byte"));
}

TEST_CASE("an environment file that others may read gets a warning", "[unit]") {
  const SharedFolder folder;
  Warnings warnings;
  make_file(folder, kOwnOnly);
  CHECK(read(folder, warnings) == Environment{{"A", "1"}});
  CHECK(warnings.empty());
  make_file(folder, kOwnOnly | fs::perms::group_read);
  CHECK(read(folder, warnings) == Environment{{"A", "1"}});
  CHECK(warnings == Warnings{"--env-file: others may read f.env; if it has secrets, chmod go-r f.env"});
}

TEST_CASE("an environment file that others may write, or of another user, is refused", "[unit]") {
  const SharedFolder folder;
  Warnings warnings;
  CHECK_THROWS_WITH(read(folder, warnings), ContainsSubstring("cannot read environment file " + folder.path.string()));
  make_file(folder, kOwnOnly | fs::perms::others_write);
  CHECK_THROWS_WITH(read(folder, warnings),
                    "--env-file: bad owner or permissions on f.env: others may write to it; chmod go-w f.env");
  if (::getuid() != 0) {
    WARN("skipped: another user needs root");
    return;
  }
  fs::remove(folder.path / "f.env");
  folder.other_user("umask 077; echo A=1 > f.env");
  CHECK_THROWS_WITH(read(folder, warnings),
                    "--env-file: bad owner or permissions on f.env: it belongs to user 65534; make a copy of your "
                    "own: cp f.env COPY");
}
