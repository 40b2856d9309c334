#include "hostfile/read_hostfile.hpp"

#include <sys/stat.h>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/files/trusted_file.hpp"
#include "base/read_file.hpp"
#include "hostfile/parse_hosts.hpp"

namespace runjob {

Hostfile read_hostfile(const std::string& path, const std::string& name) {
  Hostfile result;
  const auto check_mode = [&](int file, const struct ::stat& info) {
    const std::string reason = reason_others_may_write(file, info, name);
    if (!reason.empty()) throw Error(Errc::kUsage, fmt::format("bad permissions on hostfile {}: {}", name, reason));
    result.owner = info.st_uid;
  };
  result.hosts = parse_hostfile(read_file(path, "hostfile", check_mode), name);
  return result;
}

}  // namespace runjob
