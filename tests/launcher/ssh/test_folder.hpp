#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace runjob {

/// A new folder under /tmp, removed at the end.
class TestFolder {
 public:
  TestFolder();
  ~TestFolder();
  TestFolder(const TestFolder&) = delete;

  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  /// Writes `text` to a file with mode 0600, making the folders that lead there. Its path.
  std::string write(const std::string& name, const std::string& text) const;
  std::string read(const std::string& name) const;

  /// Makes a key pair with ssh-keygen: NAME and NAME.pub. `options` are its -t, -b, -N, -m and others; without -N there
  /// is no passphrase. The private key's path.
  std::string make_key(const std::string& name, std::vector<std::string> options) const;

 private:
  std::filesystem::path folder_;
};

/// Runs a program to its end without standard input; throws std::runtime_error with its output when it fails.
std::string run_program(const std::vector<std::string>& command);

}  // namespace runjob
