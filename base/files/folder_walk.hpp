#pragma once

#include <string>
#include <string_view>

#include "base/unique_handle.hpp"

namespace runjob {

/// The way to a folder that a user has named for output, opened part by part. Another user who may write to a folder on
/// the way could put a link there that leads to a folder of this user. Therefore, from the first folder on to which
/// others may write (base/files/trusted_file.hpp has the rule), a link is followed only if this user or root has made
/// it. openat2(2) does not serve: it refuses all links or none, and old kernels and containers lack it.
///
/// Owner    the caller. Programs that this process starts do not inherit the descriptors.
/// Threads  any, one at a time.
/// Errors   Error(kUsage): `ACTION: REASON`. The reason is the system's, or a link's path and owner with the remedy.
class FolderWalk {
 public:
  /// `action`: what failed and on which path, for messages.
  explicit FolderWalk(std::string action);

  enum class Missing { kError, kMake };
  /// Goes along all parts of `path`, from the root if `path` is absolute, else from the present folder, which is at
  /// first the process's current one. A link at its end is followed as any other one. `missing`: what to do about a
  /// folder that is not there; one that is made has mode 0777, less the umask.
  void enter(std::string_view path, Missing missing);

  /// The present folder, after enter(); of O_PATH, so it serves openat(2) and its kind only.
  int folder() const { return folder_.get(); }

 private:
  UniqueFd open_part(const std::string& part, Missing missing) const;
  void go_to_root();
  void go_to(UniqueFd folder, std::string path);
  [[noreturn]] void fail(const std::string& reason) const;

  std::string action_;
  UniqueFd folder_;
  std::string path_;        // of `folder_`, for messages, with '/' at its end; "" for the current folder
  bool is_shared_ = false;  // others may write to this folder, or to one on the way to it
  int links_ = 0;
};

/// A link of /proc, which leads to what its text may not name. Only the kernel makes such links. `link`: of O_PATH.
bool is_link_of_kernel(int link);

/// The text of a link. `link`: of O_PATH.
/// Errors  Error(kSystem).
std::string link_target(int link);

}  // namespace runjob
