#include "hostfile/read_hostfile.hpp"

#include <filesystem>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/error.hpp"
#include "tests/catch.hpp"
#include "tests/shared_folder.hpp"

using namespace runjob;
namespace fs = std::filesystem;

namespace {

Hostfile read(const SharedFolder& shared) {
  return read_hostfile((shared.path / "hosts").string(), "hosts");
}

}  // namespace

TEST_CASE("read_hostfile names the file in every error", "[unit]") {
  const SharedFolder shared;
  CHECK_THROWS_WITH(read(shared),
                    fmt::format("cannot read hostfile {}/hosts: No such file or directory; check the path "
                                "and its permissions",
                                shared.path.string()));
  std::ofstream(shared.path / "hosts") << "# none\n";
  CHECK_THROWS_WITH(read(shared), "hosts: expected at least one host, found none");
  std::ofstream(shared.path / "hosts") << "a slots=2\nb\n";
  const Hostfile file = read(shared);
  REQUIRE(file.hosts.size() == 2);
  CHECK(file.hosts[0].slots == 2);
  CHECK(file.owner == ::getuid());
}

TEST_CASE("a hostfile that others than its owner may write to is refused", "[unit]") {
  const SharedFolder shared;
  std::ofstream(shared.path / "hosts") << "a\n";
  REQUIRE(::chmod((shared.path / "hosts").c_str(), 0646) == 0);
  CHECK_THROWS_WITH(read(shared), "bad permissions on hostfile hosts: others may write to it; chmod go-w hosts");
}

TEST_CASE("a hostfile of another user is read, with its owner", "[unit]") {
  if (::getuid() != 0) {
    WARN("skipped: another user needs root");
    return;
  }
  const SharedFolder shared;
  shared.other_user("echo a > hosts");
  CHECK(read(shared).owner == 65534);
}
