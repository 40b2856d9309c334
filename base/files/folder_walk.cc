#include "base/files/folder_walk.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/files/trusted_file.hpp"

namespace runjob {
namespace {

constexpr int kFlags = O_PATH | O_DIRECTORY | O_CLOEXEC;
constexpr int kMostLinks = 40;  // as the kernel's, path_resolution(7)

/// Takes the first part of a path, "" for one more slash.
std::string take_part(std::string& path) {
  const std::size_t slash = std::min(path.find('/'), path.size());
  std::string part = path.substr(0, slash);
  path.erase(0, std::min(slash + 1, path.size()));
  return part;
}

}  // namespace

FolderWalk::FolderWalk(std::string action) : action_(std::move(action)) {}

void FolderWalk::enter(std::string_view path, Missing missing) {
  if (path.starts_with('/')) {
    go_to_root();
  } else if (!folder_) {
    go_to(UniqueFd(::open(".", kFlags)), "");
  }
  for (std::string rest(path); !rest.empty();) {
    const std::string part = take_part(rest);
    if (part.empty() || part == ".") continue;
    UniqueFd next = open_part(part, missing);
    struct stat info {};
    if (::fstat(next.get(), &info) != 0) fail(std::strerror(errno));
    if (!S_ISLNK(info.st_mode)) {
      go_to(std::move(next), path_ + part + "/");
    } else if (is_link_of_kernel(next.get())) {
      go_to(UniqueFd(::openat(folder_.get(), part.c_str(), kFlags)), path_ + part + "/");
    } else {
      if (is_shared_ && info.st_uid != ::geteuid() && info.st_uid != 0)
        fail(fmt::format("the link {}{} belongs to user {}, and not to user {}; name the folder to which it leads",
                         path_, part, info.st_uid, ::geteuid()));
      if (++links_ > kMostLinks) fail(std::strerror(ELOOP));
      const std::string target = link_target(next.get());
      if (target.starts_with('/')) go_to_root();
      rest = target + "/" + rest;
    }
  }
}

/// Opens it, whatever it is.
UniqueFd FolderWalk::open_part(const std::string& part, Missing missing) const {
  constexpr int kAny = O_PATH | O_NOFOLLOW | O_CLOEXEC;
  UniqueFd opened(::openat(folder_.get(), part.c_str(), kAny));
  if (!opened && errno == ENOENT && missing == Missing::kMake) {
    if (::mkdirat(folder_.get(), part.c_str(), 0777) != 0 && errno != EEXIST) fail(std::strerror(errno));
    opened.reset(::openat(folder_.get(), part.c_str(), kAny));
  }
  if (!opened) fail(std::strerror(errno));
  return opened;
}

void FolderWalk::go_to_root() {
  is_shared_ = false;
  go_to(UniqueFd(::open("/", kFlags)), "/");
}

void FolderWalk::go_to(UniqueFd folder, std::string path) {
  struct stat info {};
  if (!folder || ::fstat(folder.get(), &info) != 0) fail(std::strerror(errno));
  if (!S_ISDIR(info.st_mode)) fail(std::strerror(ENOTDIR));
  is_shared_ = is_shared_ || !reason_to_distrust(folder.get(), info, path).empty();
  folder_ = std::move(folder);
  path_ = std::move(path);
}

void FolderWalk::fail(const std::string& reason) const {
  throw Error(Errc::kUsage, fmt::format("{}: {}", action_, reason));
}

bool is_link_of_kernel(int link) {
  struct statfs system {};
  return ::fstatfs(link, &system) == 0 && system.f_type == PROC_SUPER_MAGIC;
}

std::string link_target(int link) {
  std::array<char, PATH_MAX> text{};
  const ssize_t length = ::readlinkat(link, "", text.data(), text.size());
  if (length < 0) throw system_error("cannot read a link", errno);
  return {text.data(), static_cast<std::size_t>(length)};
}

}  // namespace runjob
