#include "launcher/remote/agent_file.hpp"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sys/utsname.h>

#include "base/error.hpp"
#include "tests/catch.hpp"

using namespace runjob;

namespace {

/// What `command` prints.
std::string output_of(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), ::pclose);
  std::string text;
  for (int c = 0; (c = std::fgetc(pipe.get())) != EOF;) text += static_cast<char>(c);
  return text;
}

}  // namespace

TEST_CASE("a program is described by its build id and machine", "[unit]") {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  const AgentFile file = describe_agent(self);
  CHECK(file.build_id.size() == 40);
  CHECK_THAT(output_of("file -L " + self + " 2>/dev/null || readelf -n " + self), ContainsSubstring(file.build_id));
  utsname system{};
  ::uname(&system);
  CHECK(file.machine == system.machine);
  CHECK(read_agent(file).size() == std::filesystem::file_size(self));
}

TEST_CASE("what is no program is refused by name", "[unit]") {
  const std::string path = std::filesystem::temp_directory_path() / "runjob-agent-file-test";
  CHECK_THROWS_WITH(describe_agent(path), "cannot read " + path + ": No such file or directory; install runjob again");
  std::ofstream(path) << std::string(200, 'x');
  CHECK_THROWS_WITH(describe_agent(path), path + " is not a program; install runjob again");
  std::ofstream(path) << "\x7f"
                         "ELF" +
                             std::string(200, '\0');
  CHECK_THROWS_WITH(describe_agent(path), path + " has no build id; install runjob again");
  std::filesystem::remove(path);
}
