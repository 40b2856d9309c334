#include "base/files/named_file.hpp"

#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/error.hpp"

namespace runjob {
namespace {

constexpr mode_t kMode = 0666;  // what the umask leaves of it

/// The path to which a link leads, from the folder of the link on.
std::string target_of(const std::string& path, int link) {
  std::array<char, PATH_MAX> text{};
  const ssize_t length = ::readlinkat(link, "", text.data(), text.size());
  if (length < 0) return path;
  const std::string target(text.data(), static_cast<std::size_t>(length));
  const std::size_t slash = path.rfind('/');
  return target.starts_with('/') || slash == path.npos ? target : path.substr(0, slash + 1) + target;
}

}  // namespace

UniqueFd open_named_file(const std::string& path, std::string_view what) {
  const auto fail = [&](const std::string& reason) {
    throw Error(Errc::kUsage, fmt::format("{}: cannot create '{}': {}", what, path, reason));
  };
  const auto check_owner = [&](const struct stat& info, const char* kind) {
    if (info.st_uid != ::geteuid() && info.st_uid != 0)
      fail(fmt::format("{} there belongs to user {}, and not to user {}; remove it, or name another file", kind,
                       info.st_uid, ::geteuid()));
  };
  constexpr int kFlags = O_WRONLY | O_CLOEXEC | O_NOCTTY;
  UniqueFd file(::open(path.c_str(), kFlags | O_CREAT | O_EXCL | O_NOFOLLOW, kMode));
  if (file) return file;
  if (errno != EEXIST) fail(std::strerror(errno));

  // It is looked at through a descriptor, so that it cannot be exchanged afterwards.
  const UniqueFd found(::open(path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  struct stat info {};
  if (!found || ::fstat(found.get(), &info) != 0) fail(std::strerror(errno));
  if (S_ISLNK(info.st_mode)) {
    check_owner(info, "the link");
    file.reset(::open(target_of(path, found.get()).c_str(), kFlags | O_CREAT, kMode));
  } else {
    if (S_ISREG(info.st_mode) || S_ISFIFO(info.st_mode)) check_owner(info, "the file");
    file.reset(::open(fmt::format("/proc/self/fd/{}", found.get()).c_str(), kFlags));
  }
  if (!file || ::fstat(file.get(), &info) != 0) fail(std::strerror(errno));
  if (S_ISREG(info.st_mode) && ::ftruncate(file.get(), 0) != 0) fail(std::strerror(errno));
  return file;
}

}  // namespace runjob
