#include "cli/options/check_paths.hpp"

#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/files/trusted_file.hpp"
#include "base/unique_handle.hpp"

namespace runjob {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(std::string_view place, std::string_view problem, std::string_view remedy) {
  throw Error(Errc::kUsage, fmt::format("{}: {}; {}", place, problem, remedy));
}

void require_access(const fs::path& path, int mode, std::string_view place, std::string_view remedy) {
  if (::access(path.c_str(), mode) != 0)
    refuse(place, fmt::format("{}: {}", path.string(), std::system_category().message(errno)), remedy);
}

bool is_existing_directory(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

}  // namespace

void check_directory(const std::string& path, std::string_view place) {
  constexpr std::string_view kRemedy = "name a directory that exists";
  require_access(path, F_OK, place, kRemedy);
  if (!is_existing_directory(path)) refuse(place, fmt::format("{} is not a directory", path), kRemedy);
  require_access(path, X_OK, place, "make it accessible or name another directory");
}

void check_readable_file(const std::string& path, std::string_view place) {
  constexpr std::string_view kRemedy = "name a file that can be read";
  require_access(path, R_OK, place, kRemedy);
  if (is_existing_directory(path)) refuse(place, fmt::format("{} is a directory", path), kRemedy);
}

void check_writable_file(const std::string& path, std::string_view place) {
  if (is_existing_directory(path)) refuse(place, fmt::format("{} is a directory", path), "name a file");
  if (is_there(path)) return require_access(path, W_OK, place, "name a file that can be written");
  const fs::path directory = fs::path(path).parent_path();
  if (!is_existing_directory(directory))
    refuse(place, fmt::format("the directory {} does not exist", directory.string()), "make it first");
  require_access(directory, W_OK | X_OK, place, "name a file in a directory that can be written");
}

void check_output_directory(const std::string& path, std::string_view place) {
  fs::path ancestor = path;
  while (!is_there(ancestor) && ancestor.has_relative_path()) ancestor = ancestor.parent_path();
  constexpr std::string_view kRemedy = "name a directory that can be made and written";
  if (!is_existing_directory(ancestor)) refuse(place, fmt::format("{} is not a directory", ancestor.string()), kRemedy);
  require_access(ancestor, W_OK | X_OK, place, kRemedy);
}

void check_own_directory(const std::string& path, std::string_view place) {
  constexpr std::string_view kRemedy = "name a directory of your own";
  const UniqueFd opened(::open(path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  struct stat info {};
  if (!opened || ::fstat(opened.get(), &info) != 0) {
    if (errno == ENOTDIR) refuse(place, fmt::format("{} lies below a file", path), kRemedy);
    return;  // it is made later
  }
  if (S_ISLNK(info.st_mode)) refuse(place, fmt::format("{} is a link", path), kRemedy);
  if (!S_ISDIR(info.st_mode)) refuse(place, fmt::format("{} is not a directory", path), kRemedy);
  if (info.st_uid != ::geteuid())
    refuse(place, fmt::format("{} belongs to user {}, and not to user {}", path, info.st_uid, ::geteuid()), kRemedy);
  const std::string reason = reason_others_may_write(opened.get(), info, path);
  if (!reason.empty()) throw Error(Errc::kUsage, fmt::format("{}: {}: {}", place, path, reason));
}

}  // namespace runjob
