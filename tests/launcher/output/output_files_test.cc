#include "launcher/output/output_files.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "tests/catch.hpp"
#include "tests/shared_folder.hpp"

using namespace runjob;
namespace fs = std::filesystem;

namespace {

/// What is in a folder, by name; nothing when it does not exist.
std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

/// A job that writes `text` as rank N's output, for each of `folders`.
void run_job(const SharedFolder& shared, const std::string& text, const std::vector<std::string>& folders) {
  OutputFiles files(shared.path.string());
  for (const std::string& folder : folders) {
    const OutputFiles::Streams streams = files.create(folder);
    write(streams.standard_output, text);
    write(streams.standard_error, text + "'s errors");
  }
}

}  // namespace

TEST_CASE("the output of earlier jobs is moved, each into a folder of its own, also within one second", "[unit]") {
  const SharedFolder shared;
  run_job(shared, "first", {"rank.0", "rank.1", "rank.12"});
  CHECK(names_in(shared.path) == std::vector<std::string>{"rank.0", "rank.1", "rank.12"});
  std::ofstream(shared.path / "rank.0.txt") << "the user's";
  fs::create_directory(shared.path / "rank.x");
  run_job(shared, "second", {"rank.0"});
  run_job(shared, "third", {"rank.0"});
  CHECK(names_in(shared.path) == std::vector<std::string>{"previous", "rank.0", "rank.0.txt", "rank.x"});
  CHECK(shared.text("rank.0/stdout") == "third");
  CHECK(shared.text("rank.0/stderr") == "third's errors");
  std::vector<std::string> kept;
  for (const std::string& time : names_in(shared.path / "previous")) {
    CHECK(time.find(':') == std::string::npos);
    for (const std::string& folder : names_in(shared.path / "previous" / time)) {
      const std::string file = fmt::format("previous/{}/{}/", time, folder);
      kept.push_back(folder + " " + shared.text((file + "stdout").c_str()) + " " +
                     shared.text((file + "stderr").c_str()));
    }
  }
  std::sort(kept.begin(), kept.end());
  CHECK(names_in(shared.path / "previous").size() == 2);
  CHECK(kept == std::vector<std::string>{"rank.0 first first's errors", "rank.0 second second's errors",
                                         "rank.1 first first's errors", "rank.12 first first's errors"});
}

TEST_CASE("two jobs that write to one folder at the same time lose nothing", "[unit]") {
  const SharedFolder shared;
  OutputFiles one(shared.path.string()), other(shared.path.string());
  const OutputFiles::Streams first = one.create("rank.0");
  const OutputFiles::Streams second = other.create("rank.0");
  const OutputFiles::Streams third = one.create("rank.0");  // its own, after a move by the other one
  write(first.standard_output, "1");
  write(second.standard_output, "2");
  write(third.standard_output, "3");
  CHECK(shared.text("rank.0/stdout") == "3");
  std::string kept;
  for (const auto& entry : fs::recursive_directory_iterator(shared.path / "previous"))
    if (entry.path().filename() == "stdout") kept += shared.text(fs::relative(entry.path(), shared.path).c_str());
  std::sort(kept.begin(), kept.end());
  CHECK(kept == "12");
}

TEST_CASE("a folder that cannot be moved is an error with both paths", "[unit]") {
  const SharedFolder shared;
  run_job(shared, "first", {"rank.0"});
  std::ofstream(shared.path / "previous") << "a file";
  CHECK_THROWS_WITH(OutputFiles(shared.path.string()),
                    fmt::format("--output-filename: cannot use {}/previous: it is a link or a file; remove it, or name "
                                "another folder",
                                shared.path.string()));
  CHECK(shared.text("rank.0/stdout") == "first");
}

TEST_CASE("what another user has put there first is not written to", "[unit]") {
  if (::getuid() != 0) {
    WARN("skipped: another user needs root");
    return;
  }
  const SharedFolder shared;
  std::ofstream(shared.path / "ours") << "precious";
  fs::create_directory(shared.path / "folder of ours");
  OutputFiles files(shared.path.string());
  const std::string start = fmt::format("--output-filename: cannot use {}/rank.0: ", shared.path.string());
  SECTION("a link on the way to the folder, or as the folder") {
    shared.other_user("ln -s \"folder of ours\" link");
    const std::string link = shared.path.string() + "/link";
    const std::string reason = " belongs to user 65534, and not to user 0; name the folder to which it leads";
    for (const std::string& path : {link, link + "/out"})
      CHECK_THROWS_WITH(OutputFiles{path},
                        fmt::format("--output-filename: cannot make {}: the link {}{}", path, link, reason));
  }
  SECTION("a folder with a link in it") {
    shared.other_user("mkdir rank.0; ln -s ../ours rank.0/stdout");
    CHECK_THROWS_WITH(files.create("rank.0"),
                      start + "it belongs to user 65534, and not to user 0; remove it, or name another folder");
  }
  SECTION("a link to a folder of ours") {
    shared.other_user("ln -s \"folder of ours\" rank.0");
    CHECK_THROWS_WITH(files.create("rank.0"), start + "it is a link or a file; remove it, or name another folder");
  }
  SECTION("a link in our own folder, to which he may write") {
    fs::create_directory(shared.path / "rank.0");
    REQUIRE(::chmod((shared.path / "rank.0").c_str(), 0777) == 0);
    shared.other_user("ln -s ../ours rank.0/stdout");
    write(files.create("rank.0").standard_output, "output");
    CHECK(shared.text("rank.0/stdout") == "output");
  }
  CHECK(shared.text("ours") == "precious");
  CHECK(fs::is_empty(shared.path / "folder of ours"));
}
