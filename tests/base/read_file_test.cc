#include "base/read_file.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <unistd.h>

#include "base/error.hpp"
#include "tests/catch.hpp"

using namespace runjob;
namespace fs = std::filesystem;

TEST_CASE("read_file returns every byte", "[unit]") {
  std::string path = (fs::temp_directory_path() / "runjob-read-file-XXXXXX").string();
  const int descriptor = ::mkstemp(path.data());
  REQUIRE(descriptor >= 0);
  ::close(descriptor);
  CHECK(read_file(path, "hostfile").empty());
  std::string bytes(200'000, 'x');
  bytes[1000] = '\0';
  bytes += "\r\n";
  std::ofstream(path, std::ios::binary) << bytes;
  CHECK(read_file(path, "hostfile") == bytes);
  fs::remove(path);
}

TEST_CASE("read_file says what it could not read and why", "[unit]") {
  CHECK_THROWS_WITH(read_file("/nonexistent/hosts", "hostfile"),
                    "cannot read hostfile /nonexistent/hosts: No such file or directory; check the path and "
                    "its permissions");
  CHECK_THROWS_WITH(read_file("/", "config file"),
                    "cannot read config file /: Is a directory; check the path and its permissions");
  CHECK_THROWS_WITH(read_file("/dev/zero", "hostfile"),
                    "cannot read hostfile /dev/zero: it is larger than 64 MiB; check the path and its permissions");
}
