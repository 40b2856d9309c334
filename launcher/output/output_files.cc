#include "launcher/output/output_files.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/error.hpp"

namespace runjob {
namespace {

[[noreturn]] void fail(const char* action, const std::string& path, const std::string& reason) {
  throw Error(Errc::kUsage, fmt::format("--output-filename: cannot {} {}: {}", action, path, reason));
}

}  // namespace

OutputFiles::OutputFiles(const std::string& directory) : path_(directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) fail("make", directory, error.message());
  directory_.reset(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory_) fail("open", directory, std::strerror(errno));
}

UniqueFd OutputFiles::create(const std::string& folder, const std::string& name) const {
  const std::string folder_path = fmt::format("{}/{}", path_, folder);
  if (::mkdirat(directory_.get(), folder.c_str(), 0777) != 0 && errno != EEXIST)
    fail("make", folder_path, std::strerror(errno));
  const UniqueFd opened(::openat(directory_.get(), folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat info {};
  if (!opened && errno == ENOTDIR)
    fail("use", folder_path, "it is a link or a file; remove it, or name another folder");
  if (!opened || ::fstat(opened.get(), &info) != 0) fail("open", folder_path, std::strerror(errno));
  if (info.st_uid != ::geteuid())
    fail("use", folder_path,
         fmt::format("it belongs to user {}, and not to user {}; remove it, or name another folder", info.st_uid,
                     ::geteuid()));
  const std::string file_path = fmt::format("{}/{}", folder_path, name);
  if (::unlinkat(opened.get(), name.c_str(), 0) != 0 && errno != ENOENT)
    fail("replace", file_path, std::strerror(errno));
  UniqueFd file(::openat(opened.get(), name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
  if (!file) fail("write", file_path, std::strerror(errno));
  return file;
}

}  // namespace runjob
