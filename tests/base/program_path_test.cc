#include "base/program_path.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/error.hpp"
#include "tests/catch.hpp"

using namespace runjob;
namespace fs = std::filesystem;

namespace {

struct TemporaryTree {
  TemporaryTree() {
    std::string name = (fs::temp_directory_path() / "runjob-program-path-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    root = name;
    fs::create_directories(root / "bin");
    fs::create_directories(root / "libexec" / "runjob");
  }
  ~TemporaryTree() { fs::remove_all(root); }

  fs::path make(const fs::path& relative, fs::perms permissions) const {
    std::ofstream(root / relative) << "#!/bin/sh\n";
    fs::permissions(root / relative, permissions);
    return root / relative;
  }

  fs::path root;
};

}  // namespace

TEST_CASE("program_path finds what lies beside the running program", "[unit]") {
  CHECK(fs::path(program_path("base_test")).is_absolute());
  CHECK_THROWS_WITH(program_path("runjob-nothing"), ContainsSubstring("cannot find runjob-nothing: neither /"));
}

TEST_CASE("program_path prefers the program beside runjob to the installed one", "[unit]") {
  const TemporaryTree tree;
  const std::string bin = (tree.root / "bin").string();
  const fs::path installed = tree.make("libexec/runjob/runjob-agent", fs::perms::owner_all);
  CHECK(program_path("runjob-agent", bin) == installed);
  const fs::path beside = tree.make("bin/runjob-agent", fs::perms::owner_all);
  CHECK(program_path("runjob-agent", bin) == beside);
}

TEST_CASE("program_path skips what cannot be run and names both places", "[unit]") {
  const TemporaryTree tree;
  const std::string bin = (tree.root / "bin").string();
  tree.make("bin/runjob-agent", fs::perms::owner_read);
  fs::create_directory(tree.root / "libexec" / "runjob" / "runjob-agent");
  CHECK_THROWS_WITH(program_path("runjob-agent", bin), "cannot find runjob-agent: neither " + bin +
                                                           "/runjob-agent nor " +
                                                           (tree.root / "libexec/runjob/runjob-agent").string() +
                                                           " can be executed; install runjob again");
}
