#include "launcher/host_sources/hostfile_source.hpp"

#include <filesystem>
#include <fstream>
#include <unistd.h>

#include "tests/catch.hpp"
#include "tests/launcher/host_sources/source_of_hosts.hpp"
#include "tests/shared_folder.hpp"

using namespace runjob;
using Names = std::vector<std::string>;

namespace {

struct Folder {
  Folder() { std::filesystem::create_directory(path); }
  ~Folder() { std::filesystem::remove_all(path); }
  void write(const std::string& name, const std::string& text) const { std::ofstream(path + "/" + name) << text; }

  std::string path = "/tmp/runjob_hostfile_" + std::to_string(::getpid());
};

/// The lines of warnings, while it lives.
struct WarningLines {
  WarningLines() {
    log::configure(log::Level::kWarn, "");  // another file of this program logs errors alone
    log::redirect([this](std::string_view line) { lines.emplace_back(line); });
  }
  ~WarningLines() {
    log::redirect({});
    log::configure(log::Level::kError, "");
  }
  std::vector<std::string> lines;
};

}  // namespace

TEST_CASE("a hostfile is read again when it was written or put in the old one's place", "[unit]") {
  const Folder folder;
  folder.write("hosts", "s1\n");
  JobOfSource it("s1:1");
  HostfileSource source(it.context.get_executor(), folder.path + "/hosts", ::getuid(), it.changes);
  source.start();
  folder.write("hosts", "s1\ns2\n");
  CHECK(it.run_until([&] { return it.changed == 1; }) == Names{"s1", "s2"});
  folder.write("hosts.new", "s2\ns3\n");
  std::filesystem::rename(folder.path + "/hosts.new", folder.path + "/hosts");
  CHECK(it.run_until([&] { return it.changed == 2; }) == Names{"s2", "s3"});
  SECTION("a file that is not valid as a whole changes nothing") {
    folder.write("hosts", "s4\ns5 slot=x\n");
    folder.write("other", "");
    const auto later = std::chrono::steady_clock::now() + std::chrono::seconds(4);
    CHECK(it.run_until([&] { return std::chrono::steady_clock::now() > later; }) == Names{"s2", "s3"});
    folder.write("hosts", "s4\n");
    CHECK(it.run_until([&] { return it.changed == 3; }) == Names{"s4"});
  }
  SECTION("a file that somebody still writes is not read") {
    std::ofstream open(folder.path + "/hosts");
    open << "s7\n" << std::flush;
    const auto later = std::chrono::steady_clock::now() + std::chrono::seconds(4);
    CHECK(it.run_until([&] { return std::chrono::steady_clock::now() > later; }) == Names{"s2", "s3"});
    open << "s8\n";
    open.close();
    CHECK(it.run_until([&] { return it.changed == 3; }) == Names{"s7", "s8"});
  }
  source.stop();
}

TEST_CASE("what another user writes to a hostfile or puts in its place changes no host, with one warning", "[unit]") {
  if (::getuid() != 0) {
    WARN("skipped: another user needs root");
    return;
  }
  const SharedFolder shared;
  const std::string path = (shared.path / "hosts").string();
  std::ofstream(path) << "s1\n";
  const WarningLines warnings;
  const std::vector<std::string>& lines = warnings.lines;
  JobOfSource it("s1:1");
  HostfileSource source(it.context.get_executor(), path, ::getuid(), it.changes);
  source.start();
  const std::string end = "; the hosts stay as they are\n";
  SECTION("his own file") {
    shared.other_user("echo evil > new; mv -f new hosts");
    CHECK(it.run_until([&] { return !lines.empty(); }) == Names{"s1"});
    REQUIRE(lines.size() == 1);
    CHECK(lines.front() ==
          fmt::format("runjob: warning: hostfile {0} belongs to user 65534, and to user 0 when the job "
                      "was started; make a copy of your own: cp {0} COPY && mv -f COPY {0}",
                      path) +
              end);
    shared.run("echo s2 > new; mv -f new hosts");
  }
  SECTION("a file that was opened to him") {
    shared.run("chmod o+w hosts");
    shared.other_user("echo evil >> hosts");
    CHECK(it.run_until([&] { return !lines.empty(); }) == Names{"s1"});
    CHECK(
        lines.front() ==
        fmt::format("runjob: warning: bad permissions on hostfile {0}: others may write to it; chmod go-w {0}", path) +
            end);
    shared.other_user("echo again >> hosts");
    std::ofstream(path) << "s2\n";
    shared.run("chmod go-w hosts");  // the remedy, without another change
  }
  CHECK(it.run_until([&] { return it.changed == 1; }) == Names{"s2"});
  CHECK(lines.size() == 1);
  source.stop();
}

TEST_CASE("the edits of the user whose hostfile the job was started with are followed", "[unit]") {
  if (::getuid() != 0) {
    WARN("skipped: another user needs root");
    return;
  }
  const SharedFolder shared;
  shared.other_user("echo s1 > hosts");
  JobOfSource it("s1:1");
  HostfileSource source(it.context.get_executor(), (shared.path / "hosts").string(), 65534, it.changes);
  source.start();
  shared.other_user("echo s2 > hosts");
  CHECK(it.run_until([&] { return it.changed == 1; }) == Names{"s2"});
  source.stop();
}
