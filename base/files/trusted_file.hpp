#pragma once

#include <string>

struct stat;

namespace runjob {

/// Returns the reason why the content of a file with this owner and mode cannot be trusted, with the remedy; "" if it
/// can be. A trusted file belongs to this user or to root, and no other user may write to it.
///
/// `info`   of the file that the caller has opened, from fstat(2). This function does not look at the file itself.
/// `path`   the file's name, for the remedy
/// Threads  any.
/// Errors   none; the caller adds the text to a message of its own.
/// Source   OpenSSH, readconf.c, read_config_file_depth(), which checks ~/.ssh/config in the same way.
std::string reason_to_distrust(const struct ::stat& info, const std::string& path);

}  // namespace runjob
