#include "launcher/ssh/files/ssh_config_files.hpp"

#include <filesystem>
#include <glob.h>
#include <system_error>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/files/trusted_file.hpp"
#include "base/read_file.hpp"

namespace runjob {
namespace {

namespace fs = std::filesystem;

/// The files that match, in alphabetical order; folders are none.
std::vector<std::string> matching_files(const std::string& pattern) {
  std::vector<std::string> files;
  glob_t found{};
  if (::glob(pattern.c_str(), 0, nullptr, &found) == 0) {
    for (std::size_t i = 0; i < found.gl_pathc; ++i) {
      std::error_code ignored;
      if (fs::is_regular_file(found.gl_pathv[i], ignored)) files.emplace_back(found.gl_pathv[i]);
    }
  }
  ::globfree(&found);
  return files;
}

enum class Owner { kUser, kSystem };

SshConfigText read_config(const std::string& path, Owner owner) {
  constexpr const char* kRole = "SSH configuration";
  if (owner == Owner::kSystem) return {read_file(path, kRole), path};
  const auto as_ssh_does = [&](int, const struct ::stat& info) {
    const std::string reason = reason_ssh_distrusts(info, path);
    if (!reason.empty()) throw Error(Errc::kUsage, fmt::format("Bad owner or permissions on {}: {}", path, reason));
  };
  return {read_file(path, kRole, as_ssh_does), path};
}

std::vector<SshDirective> read_one(const std::string& path, const std::string& home, Owner owner) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return {};
  const fs::path folder = fs::path(path).parent_path();
  const IncludeReader include = [&](const std::string& pattern) {
    const bool in_home = pattern.substr(0, 2) == "~/";
    std::vector<SshConfigText> texts;
    for (const std::string& file : matching_files(in_home ? home + pattern.substr(1) : (folder / pattern).string()))
      texts.push_back(read_config(file, owner));
    return texts;
  };
  return parse_ssh_config(read_config(path, owner), include);
}

}  // namespace

std::vector<std::vector<SshDirective>> read_ssh_config(const SshConfigPaths& paths) {
  return {read_one(paths.user, paths.home, Owner::kUser), read_one(paths.system, paths.home, Owner::kSystem)};
}

}  // namespace runjob
