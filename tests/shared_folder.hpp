#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/unique_handle.hpp"
#include "tests/catch.hpp"

namespace runjob {

/// A new folder that everybody may write to, removed with its contents at the end.
class SharedFolder {
 public:
  SharedFolder() {
    std::string name = "/tmp/runjob-shared-folder-XXXXXX";
    path = ::mkdtemp(name.data());
    REQUIRE(::chmod(path.c_str(), 0777) == 0);
  }
  ~SharedFolder() { std::filesystem::remove_all(path); }

  /// Runs a shell command there, with `prefix` before the shell.
  void run(const std::string& command, const std::string& prefix = "") const {
    const std::string line = fmt::format("cd {} && {} sh -c '{}'", path.string(), prefix, command);
    REQUIRE(std::system(line.c_str()) == 0);
  }
  /// Another user runs a shell command there. Needs root.
  void other_user(const std::string& command) const {
    run(command, "setpriv --reuid=65534 --regid=65534 --clear-groups");
  }
  std::string text(const char* name) const {
    std::ostringstream text;
    text << std::ifstream(path / name).rdbuf();
    return text.str();
  }

  std::filesystem::path path;
};

/// Writes all of `text` to an open file.
inline void write(const UniqueFd& file, std::string_view text) {
  REQUIRE(::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()));
}

}  // namespace runjob
