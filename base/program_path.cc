#include "base/program_path.hpp"

#include <filesystem>
#include <unistd.h>

#include "base/error.hpp"

namespace runjob {
namespace {

bool is_executable_file(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored) && ::access(path.c_str(), X_OK) == 0;
}

}  // namespace

std::string program_path(const std::string& name) {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) throw Error(Errc::kUnavailable, "cannot find this program's own path in /proc: " + error.message());
  return program_path(name, self.parent_path());
}

std::string program_path(const std::string& name, const std::string& directory) {
  const std::filesystem::path beside = std::filesystem::path(directory) / name;
  const std::filesystem::path installed = std::filesystem::path(directory).parent_path() / "libexec" / "runjob" / name;
  for (const std::filesystem::path& path : {beside, installed}) {
    if (is_executable_file(path)) return path;
  }
  throw Error(Errc::kUnavailable, "cannot find " + name + ": neither " + beside.string() + " nor " +
                                      installed.string() + " can be executed; install runjob again");
}

}  // namespace runjob
