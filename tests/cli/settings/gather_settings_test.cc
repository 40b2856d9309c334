#include "cli/settings/gather_settings.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <unistd.h>

#include "base/error.hpp"
#include "tests/catch.hpp"
#include "tests/shared_folder.hpp"

using namespace runjob;

TEST_CASE("command line beats environment beats config file", "[unit]") {
  std::string path = (std::filesystem::temp_directory_path() / "runjob-config-XXXXXX").string();
  const int descriptor = ::mkstemp(path.data());
  REQUIRE(descriptor >= 0);
  ::close(descriptor);
  std::ofstream(path) << "num-proc = 4\nstart-timeout = 7\nwdir = \"/\"\n";
  Warnings warnings;
  const Environment environment = {
      {"RUNJOB_NUM_PROC", "3"}, {"RUNJOB_START_TIMEOUT", "6"}, {"RUNJOB_CONFIG_FILE", path}};
  const Settings all = gather_settings(parse_command_line({"-np", "2"}), environment, warnings);
  CHECK(all == Settings{{"num-proc", {{"2"}, "-np"}},
                        {"start-timeout", {{"6"}, "environment RUNJOB_START_TIMEOUT"}},
                        {"wdir", {{"/"}, "file " + path}},
                        {"config-file", {{path}, "environment RUNJOB_CONFIG_FILE"}}});
  CHECK(warnings.empty());
  std::filesystem::remove(path);
}

TEST_CASE("a config file that another user can change is refused, also when a variable names it", "[unit]") {
  const SharedFolder folder;
  const std::string path = (folder.path / "job.toml").string();
  std::ofstream(path) << "host-discovery-script = \"touch stolen\"\n";
  Warnings warnings;
  CHECK(gather_settings(parse_command_line({"--config-file", path}), {}, warnings).contains("host-discovery-script"));
  std::filesystem::permissions(path, std::filesystem::perms::others_write, std::filesystem::perm_options::add);
  const std::string reason = ": bad owner or permissions on " + path + ": ";
  CHECK_THROWS_WITH(gather_settings(parse_command_line({"--config-file", path}), {}, warnings),
                    "--config-file" + reason + "others may write to it; chmod go-w " + path);
  if (::getuid() != 0) {
    WARN("skipped: another user needs root");
    return;
  }
  std::filesystem::remove(path);
  folder.other_user("echo > job.toml");
  CHECK_THROWS_WITH(gather_settings(parse_command_line({}), {{"RUNJOB_CONFIG_FILE", path}}, warnings),
                    "environment RUNJOB_CONFIG_FILE" + reason +
                        "it belongs to user 65534; make a copy of your own: cp " + path + " COPY");
}

TEST_CASE("a config file that cannot be read is an error", "[unit]") {
  Warnings warnings;
  CHECK_THROWS_WITH(gather_settings(parse_command_line({"--config-file", "/nonexistent.toml"}), {}, warnings),
                    "cannot read config file /nonexistent.toml: No such file or directory; check the path and its "
                    "permissions");
}
