#pragma once

#include <string>

struct stat;

namespace runjob {

/// Why nobody should trust the content of a file with this owner and mode, and the remedy; "" if it can be trusted. A
/// trusted file belongs to this user or to root, and nobody else may write to it. `path`: the file as messages name it.
/// Source  OpenSSH, readconf.c, read_config_file_depth(), which checks ~/.ssh/config so.
std::string reason_to_distrust(const struct ::stat& info, const std::string& path);

}  // namespace runjob
