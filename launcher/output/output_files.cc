#include "launcher/output/output_files.hpp"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/files/folder_walk.hpp"
#include "base/log.hpp"
#include "base/utc_time.hpp"

namespace runjob {
namespace {

constexpr int kFolderFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
constexpr int kMostTries = 1000;  // of names that concurrent jobs take first

[[noreturn]] void fail(const char* action, const std::string& path, const std::string& reason) {
  throw Error(Errc::kUsage, fmt::format("--output-filename: cannot {} {}: {}", action, path, reason));
}

/// "rank.0", "rank.12".
bool is_folder_of_rank(std::string_view name) {
  constexpr std::string_view kPrefix = "rank.";
  if (!name.starts_with(kPrefix) || name.size() == kPrefix.size()) return false;
  name.remove_prefix(kPrefix.size());
  return std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
}

/// Throws unless `opened`, which is -1 after a failure, is a folder of this user.
void check_folder(const UniqueFd& opened, const std::string& path) {
  struct stat info {};
  if (!opened && (errno == ENOTDIR || errno == ELOOP))
    fail("use", path, "it is a link or a file; remove it, or name another folder");
  if (!opened || ::fstat(opened.get(), &info) != 0) fail("open", path, std::strerror(errno));
  if (info.st_uid != ::geteuid())
    fail("use", path,
         fmt::format("it belongs to user {}, and not to user {}; remove it, or name another folder", info.st_uid,
                     ::geteuid()));
}

}  // namespace

OutputFiles::OutputFiles(const std::string& directory) : path_(directory) {
  FolderWalk walk(fmt::format("--output-filename: cannot make {}", directory));
  walk.enter(directory, FolderWalk::Missing::kMake);
  directory_.reset(::openat(walk.folder(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory_) fail("open", directory, std::strerror(errno));
  keep_earlier();
}

/// What belongs to another user stays, and is an error only where this job needs the name.
void OutputFiles::keep_earlier() {
  std::error_code error;
  std::vector<std::string> names;  // all of them first, because the folder changes then
  for (auto entry = std::filesystem::directory_iterator(path_, error); !error && entry != end(entry);
       entry.increment(error))
    names.push_back(entry->path().filename().string());
  if (error) fail("read", path_, error.message());
  for (const std::string& name : names) {
    struct stat info {};
    if (!is_folder_of_rank(name) || ::fstatat(directory_.get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0)
      continue;
    if (S_ISDIR(info.st_mode) && info.st_uid == ::geteuid()) keep(name);
  }
  if (!kept_path_.empty()) log::info("the output of an earlier job is in {} now", kept_path_);
}

/// Moves a folder of this user, if it is still there, to `previous/TIME`.
void OutputFiles::keep(const std::string& folder) {
  if (!kept_) open_place_for_earlier();
  if (::renameat(directory_.get(), folder.c_str(), kept_.get(), folder.c_str()) == 0 || errno == ENOENT) return;
  if (errno == EEXIST || errno == ENOTEMPTY) {  // this job has moved one of this name already
    open_place_for_earlier();
    if (::renameat(directory_.get(), folder.c_str(), kept_.get(), folder.c_str()) == 0 || errno == ENOENT) return;
  }
  fail("move", fmt::format("{}/{} to {}", path_, folder, kept_path_), std::strerror(errno));
}

void OutputFiles::open_place_for_earlier() {
  const std::string previous_path = path_ + "/previous";
  if (::mkdirat(directory_.get(), "previous", 0777) != 0 && errno != EEXIST)
    fail("make", previous_path, std::strerror(errno));
  const UniqueFd previous(::openat(directory_.get(), "previous", kFolderFlags));
  check_folder(previous, previous_path);
  std::string time = utc_time(std::chrono::system_clock::now());
  time = time.substr(0, time.find('.')) + "Z";
  std::replace(time.begin(), time.end(), ':', '-');  // scp and rsync take what precedes a colon for a host
  for (int number = 1; number <= kMostTries; ++number) {
    const std::string name = number == 1 ? time : fmt::format("{}.{}", time, number);
    kept_path_ = previous_path + "/" + name;
    if (::mkdirat(previous.get(), name.c_str(), 0777) == 0) {
      kept_.reset(::openat(previous.get(), name.c_str(), kFolderFlags));
      return check_folder(kept_, kept_path_);
    }
    if (errno != EEXIST) break;
  }
  fail("make", kept_path_, std::strerror(errno));
}

/// A new folder. Another job may take the same names at the same time: neither loses what it writes.
UniqueFd OutputFiles::make_folder(const std::string& folder) {
  const std::string path = fmt::format("{}/{}", path_, folder);
  for (int tries = 0; tries < kMostTries; ++tries) {
    const bool is_new = ::mkdirat(directory_.get(), folder.c_str(), 0777) == 0;
    if (!is_new && errno != EEXIST) fail("make", path, std::strerror(errno));
    UniqueFd opened(::openat(directory_.get(), folder.c_str(), kFolderFlags));
    if (!opened && errno == ENOENT) continue;  // the other job has moved it
    check_folder(opened, path);
    if (is_new) return opened;
    keep(folder);
  }
  fail("make", path, "other jobs move it at once; name another folder");
}

OutputFiles::Streams OutputFiles::create(const std::string& folder) {
  constexpr std::array<const char*, 2> kNames = {"stdout", "stderr"};
  for (int tries = 0; tries < kMostTries; ++tries) {
    const UniqueFd opened = make_folder(folder);
    std::array<UniqueFd, 2> files;
    int error = 0;
    for (std::size_t i = 0; error == 0 && i < files.size(); ++i) {
      files[i].reset(::openat(opened.get(), kNames[i], O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
      if (files[i]) continue;
      error = errno;
      if (error != EEXIST) fail("write", fmt::format("{}/{}/{}", path_, folder, kNames[i]), std::strerror(error));
    }
    if (error == 0) return {std::move(files[0]), std::move(files[1])};
    keep(folder);  // another job writes there, which has moved ours before it was opened
  }
  fail("make", fmt::format("{}/{}", path_, folder), "other jobs take it at once; name another folder");
}

}  // namespace runjob
