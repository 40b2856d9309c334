#include "base/files/trusted_file.hpp"

#include <array>
#include <cerrno>
#include <cstdio>
#include <grp.h>
#include <memory>
#include <optional>
#include <pwd.h>
#include <string_view>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/error.hpp"

namespace runjob {
namespace {

using Buffer = std::array<char, 65'536>;  // a group whose members do not fit is nobody's own

bool is_own(const struct ::stat& info) {
  return info.st_uid == 0 || info.st_uid == ::getuid();
}

/// Another account of this system has the group as its primary one. Such accounts are not among a group's members.
/// Accounts of a directory service are not listed: for these the group's name decides.
bool is_primary_group_of_others(::gid_t group, ::uid_t user) {
  const std::unique_ptr<FILE, int (*)(FILE*)> accounts(::fopen("/etc/passwd", "re"), ::fclose);
  if (!accounts) return false;
  Buffer buffer{};
  passwd entry{}, *found = nullptr;
  while (::fgetpwent_r(accounts.get(), &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr) {
    if (found->pw_gid == group && found->pw_uid != user) return true;
  }
  return false;
}

/// The group is the one that adduser(8) makes for a user, with no other member.
/// Source  pam_umask(8), `usergroups`: the user's name is that of his primary group.
bool is_group_of_one(::gid_t group, ::uid_t user) {
  Buffer user_text{}, group_text{};
  passwd user_entry{}, *account = nullptr;
  ::group group_entry{}, *members = nullptr;
  if (::getpwuid_r(user, &user_entry, user_text.data(), user_text.size(), &account) != 0 || account == nullptr ||
      account->pw_gid != group)
    return false;
  if (::getgrgid_r(group, &group_entry, group_text.data(), group_text.size(), &members) != 0 || members == nullptr)
    return false;
  const std::string_view name = account->pw_name;
  if (name != members->gr_name) return false;
  for (char** member = members->gr_mem; *member != nullptr; ++member) {
    if (name != *member) return false;
  }
  return !is_primary_group_of_others(group, user);
}

/// With an access control list the group's bits of the mode are what all entries of the list may have at most.
bool has_access_list(int file) {
  const std::string path = fmt::format("/proc/self/fd/{}", file);  // fgetxattr() refuses descriptors of O_PATH
  return ::getxattr(path.c_str(), "system.posix_acl_access", nullptr, 0) >= 0 || (errno != ENODATA && errno != ENOTSUP);
}

bool may_others_write(int file, const struct ::stat& info) {
  if (S_ISCHR(info.st_mode)) return false;
  if ((info.st_mode & S_IWOTH) != 0) return true;
  if ((info.st_mode & S_IWGRP) == 0) return false;
  const bool is_of_one = is_group_of_one(info.st_gid, info.st_uid) || is_group_of_one(info.st_gid, ::getuid());
  return !is_of_one || has_access_list(file);
}

std::string writable(const std::string& path) {
  return fmt::format("others may write to it; chmod go-w {}", path);
}

}  // namespace

std::string reason_to_distrust(int file, const struct ::stat& info, const std::string& path) {
  if (!is_own(info))
    return fmt::format("it belongs to user {}; make a copy of your own: cp {} COPY", info.st_uid, path);
  return reason_others_may_write(file, info, path);
}

void require_trusted(int file, const struct ::stat& info, const std::string& path, std::string_view place) {
  const std::string reason = reason_to_distrust(file, info, path);
  if (!reason.empty())
    throw Error(Errc::kUsage, fmt::format("{}: bad owner or permissions on {}: {}", place, path, reason));
}

std::string reason_others_may_write(int file, const struct ::stat& info, const std::string& path) {
  return may_others_write(file, info) ? writable(path) : "";
}

std::string reason_ssh_distrusts(const struct ::stat& info, const std::string& path) {
  if (!is_own(info)) return fmt::format("it belongs to user {}; make one of your own", info.st_uid);
  return (info.st_mode & (S_IWGRP | S_IWOTH)) != 0 ? writable(path) : "";
}

}  // namespace runjob
