#include "base/process/processor_quota.hpp"

#include <algorithm>
#include <fstream>
#include <limits>
#include <sstream>

namespace runjob {
namespace {

constexpr double kNoQuota = std::numeric_limits<double>::infinity();

std::string read_text(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// Parses "max 100000" or "150000 100000": microseconds of a quota and of its period.
double quota_of(const std::string& text) {
  std::istringstream stream(text);
  double quota = 0, period = 0;
  return stream >> quota >> period && quota > 0 && period > 0 ? quota / period : kNoQuota;
}

double quota_of_folder(const std::string& folder, bool is_v2) {
  if (is_v2) return quota_of(read_text(folder + "/cpu.max"));
  return quota_of(read_text(folder + "/cpu.cfs_quota_us") + " " + read_text(folder + "/cpu.cfs_period_us"));
}

/// The smallest quota of `group` and of every group above it.
double least_quota(const std::string& mount, std::string group, bool is_v2) {
  double least = kNoQuota;
  for (;;) {
    if (group == "/") group.clear();
    least = std::min(least, quota_of_folder(mount + group, is_v2));
    if (group.empty()) return least;
    group.erase(group.rfind('/') == group.npos ? 0 : group.rfind('/'));
  }
}

}  // namespace

double processor_quota() {
  return control_group_quota(read_text("/proc/self/cgroup"), "/sys/fs/cgroup");
}

double control_group_quota(const std::string& self, const std::string& mount) {
  double least = kNoQuota;
  std::istringstream lines(self);
  for (std::string line; std::getline(lines, line);) {  // "hierarchy:controllers:path"
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == line.npos || second == line.npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::string group = line.substr(second + 1);
    if (controllers == ",,") least = std::min(least, least_quota(mount, group, true));
    if (controllers.find(",cpu,") != controllers.npos)
      least = std::min(least, least_quota(mount + "/cpu", group, false));
  }
  return least;
}

}  // namespace runjob
