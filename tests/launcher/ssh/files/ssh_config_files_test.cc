#include "launcher/ssh/files/ssh_config_files.hpp"

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

TEST_CASE("a mistake names the file that it is in", "[unit]") {
  const TestFolder folder;
  folder.write("config", "Include part\n");
  const std::string part = folder.write("part", "Port\n");
  CHECK_THROWS_WITH(read_ssh_config({folder.path("config"), "/", "/nonexistent"}),
                    part + " line 1: Port has no argument");
}
