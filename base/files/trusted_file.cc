#include "base/files/trusted_file.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

namespace runjob {

std::string reason_to_distrust(const struct ::stat& info, const std::string& path) {
  if (info.st_uid != 0 && info.st_uid != ::getuid())
    return fmt::format("it belongs to user {}; make one of your own", info.st_uid);
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0) return fmt::format("others may write to it; chmod go-w {}", path);
  return "";
}

}  // namespace runjob
