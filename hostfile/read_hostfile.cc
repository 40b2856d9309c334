#include "hostfile/read_hostfile.hpp"

#include <sys/stat.h>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/files/trusted_file.hpp"
#include "base/read_file.hpp"
#include "hostfile/parse_hosts.hpp"

namespace runjob {

HostText read_host_text(const std::string& path, const std::string& what, const std::string& name) {
  HostText result;
  const auto check_mode = [&](int file, const struct ::stat& info) {
    const std::string reason = reason_others_may_write(file, info, name);
    if (!reason.empty()) throw Error(Errc::kUsage, fmt::format("bad permissions on {} {}: {}", what, name, reason));
    result.owner = info.st_uid;
  };
  result.text = read_file(path, what, check_mode);
  return result;
}

Hostfile read_hostfile(const std::string& path, const std::string& name) {
  const HostText read = read_host_text(path, "hostfile", name);
  return {parse_hostfile(read.text, name), read.owner};
}

}  // namespace runjob
