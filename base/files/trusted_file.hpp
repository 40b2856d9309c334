#pragma once

#include <string>
#include <string_view>

struct stat;

/// The rules by which the content of a file is trusted. A caller opens the file, takes its owner and mode with fstat(2)
/// from that descriptor, and only then reads it: what is checked is what is read.
/// `path`   the file's name, for the remedy; it is not opened
/// Threads  any.
/// Errors   none, unless noted. Each function returns the reason why the content cannot be trusted, with the remedy; ""
///          if it can be. The caller adds it to a message of its own.
namespace runjob {

/// A trusted file belongs to this user or to root, and no other user may write to it. Not another user is a group that
/// has only the file's owner, or this user, as its member and that user's name: the umask 002 of many systems gives
/// such a group the right to write to each new file. It counts only if the file has no access control list. A device,
/// such as a terminal, is trusted by its owner alone, because nobody reads from it what others write to it.
/// `file`   the descriptor from which `info` is
/// Cost     users and groups are looked up only if the group may write.
std::string reason_to_distrust(int file, const struct ::stat& info, const std::string& path);

/// The same for a file that a user names. `place`: what names it, such as an option.
/// Errors  Error(kUsage): `PLACE: bad owner or permissions on PATH: REASON`.
void require_trusted(int file, const struct ::stat& info, const std::string& path, std::string_view place);

/// The second half of the rule, for a file that may belong to somebody else: only its owner may write to it.
std::string reason_others_may_write(int file, const struct ::stat& info, const std::string& path);

/// SSH's rule: as reason_to_distrust(), but every group counts as other users.
/// Source  OpenSSH, readconf.c, read_config_file_depth(), which checks ~/.ssh/config.
std::string reason_ssh_distrusts(const struct ::stat& info, const std::string& path);

}  // namespace runjob
