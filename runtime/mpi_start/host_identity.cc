#include "runtime/mpi_start/host_identity.hpp"

#include <cerrno>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/error.hpp"

namespace runjob::runtime {

std::string host_identity() {
  constexpr const char* kBootId = "/proc/sys/kernel/random/boot_id";
  constexpr const char* kNetwork = "/proc/self/ns/net";
  std::string boot;
  std::ifstream file(kBootId);
  if (!std::getline(file, boot)) throw Error(Errc::kUnavailable, fmt::format("cannot read {}", kBootId));
  struct stat status {};
  if (::stat(kNetwork, &status) != 0) throw Error(Errc::kUnavailable, system_error(kNetwork, errno).what());
  return fmt::format("{} network {}:{}", boot, status.st_dev, status.st_ino);
}

std::string host_name() {
  constexpr std::size_t kMostBytes = 256;
  char name[kMostBytes] = "";
  static_cast<void>(::gethostname(name, sizeof name - 1));
  return name[0] == '\0' ? "localhost" : name;
}

}  // namespace runjob::runtime
