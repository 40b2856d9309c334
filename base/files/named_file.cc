#include "base/files/named_file.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/files/folder_walk.hpp"

namespace runjob {
namespace {

constexpr mode_t kMode = 0666;  // what the umask leaves of it
constexpr int kMostLinks = 40;  // as the kernel's, path_resolution(7)

/// The name at the end of a path; "." for a path that ends with '/'.
std::string last_part(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  return name.empty() ? "." : name;
}

}  // namespace

UniqueFd open_named_file(const std::string& path, std::string_view what, Existing existing) {
  const std::string action = fmt::format("{}: cannot create '{}'", what, path);
  const auto fail = [&](const std::string& reason) {
    throw Error(Errc::kUsage, fmt::format("{}: {}", action, reason));
  };
  const auto check_owner = [&](const struct stat& info, const char* kind) {
    if (info.st_uid != ::geteuid() && info.st_uid != 0)
      fail(fmt::format("{} there belongs to user {}, and not to user {}; remove it, or name another file", kind,
                       info.st_uid, ::geteuid()));
  };
  const int flags = O_WRONLY | O_CLOEXEC | O_NOCTTY | (existing == Existing::kContinue ? O_APPEND : 0);
  FolderWalk walk(action);
  std::string rest = path;
  for (int links = 0; links <= kMostLinks; ++links) {
    walk.enter(std::string_view(rest).substr(0, rest.rfind('/') + 1), FolderWalk::Missing::kError);
    const std::string name = last_part(rest);
    UniqueFd file(::openat(walk.folder(), name.c_str(), flags | O_CREAT | O_EXCL | O_NOFOLLOW, kMode));
    if (file) return file;
    if (errno != EEXIST) fail(std::strerror(errno));

    // It is looked at through a descriptor, so that it cannot be exchanged afterwards.
    const UniqueFd found(::openat(walk.folder(), name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    struct stat info {};
    if (!found || ::fstat(found.get(), &info) != 0) fail(std::strerror(errno));
    if (S_ISLNK(info.st_mode)) {
      check_owner(info, "the link");
      if (!is_link_of_kernel(found.get())) {
        rest = link_target(found.get());
        continue;
      }
      file.reset(::openat(walk.folder(), name.c_str(), flags));
    } else {
      if (S_ISREG(info.st_mode) || S_ISFIFO(info.st_mode)) check_owner(info, "the file");
      file.reset(::open(fmt::format("/proc/self/fd/{}", found.get()).c_str(), flags));
    }
    if (!file || ::fstat(file.get(), &info) != 0) fail(std::strerror(errno));
    if (existing == Existing::kEmpty && S_ISREG(info.st_mode) && ::ftruncate(file.get(), 0) != 0)
      fail(std::strerror(errno));
    return file;
  }
  fail(std::strerror(ELOOP));
  return {};
}

}  // namespace runjob
