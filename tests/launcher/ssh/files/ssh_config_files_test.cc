#include "launcher/ssh/files/ssh_config_files.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/error.hpp"
#include "tests/catch.hpp"
#include "tests/launcher/ssh/test_folder.hpp"

using namespace runjob;

TEST_CASE("the user's file comes before the system's, and each includes from its own folder or from home", "[unit]") {
  const TestFolder folder;
  folder.write("home/.ssh/config", "Include config.d/*.conf\nInclude ~/more\nInclude /nonexistent\n");
  folder.write("home/.ssh/config.d/b.conf", "User b\nPort 2\n");
  folder.write("home/.ssh/config.d/a.conf", "User a\n");
  folder.write("home/more", "HostName more\n");
  folder.write("etc/ssh_config", "Include d/*\nPort 22\n");
  folder.write("etc/d/one", "HostKeyAlias system\nUser system\n");
  const auto files =
      read_ssh_config({folder.path("home/.ssh/config"), folder.path("home"), folder.path("etc/ssh_config")});
  const SshHostConfig config = config_of_host(files, "s1");
  CHECK(config.user == "a");
  CHECK(config.port == 2);
  CHECK(config.host_name == "more");
  CHECK(config.host_key_alias == "system");
}

TEST_CASE("files that are not there are empty", "[unit]") {
  const auto files = read_ssh_config({"/nonexistent/config", "/nonexistent", "/nonexistent/system"});
  CHECK(config_of_host(files, "s1").needs_program.empty());
}

TEST_CASE("a file that others may write to is refused, as ssh refuses it, and its includes too", "[unit]") {
  const TestFolder folder;
  const std::string included = folder.write("part", "StrictHostKeyChecking no\n");
  const std::string config = folder.write("config", "Include part\n");
  const std::string file = GENERATE_COPY(included, config);
  const auto read = [&] { return read_ssh_config({config, "/", "/nonexistent"}); };
  SECTION("by its mode") {
    REQUIRE(::chmod(file.c_str(), 0666) == 0);
    CHECK_THROWS_WITH(read(),
                      fmt::format("Bad owner or permissions on {0}: others may write to it; chmod go-w {0}", file));
    CHECK_NOTHROW(read_ssh_config({"/nonexistent", "/", config}));  // the system's file is root's business
  }
  SECTION("by its owner") {
    if (::getuid() != 0) {
      WARN("skipped: another user needs root");
      return;
    }
    REQUIRE(::chown(file.c_str(), 65534, 65534) == 0);
    CHECK_THROWS_WITH(
        read(), fmt::format("Bad owner or permissions on {}: it belongs to user 65534; make one of your own", file));
  }
}

TEST_CASE("a mistake names the file that it is in", "[unit]") {
  const TestFolder folder;
  folder.write("config", "Include part\n");
  const std::string part = folder.write("part", "Port\n");
  CHECK_THROWS_WITH(read_ssh_config({folder.path("config"), "/", "/nonexistent"}),
                    part + " line 1: Port has no argument");
}
