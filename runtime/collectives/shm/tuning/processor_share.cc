#include "runtime/collectives/shm/tuning/processor_share.hpp"

#include <algorithm>
#include <bitset>
#include <fstream>
#include <limits>
#include <sched.h>
#include <sstream>
#include <thread>
#include <vector>

namespace runjob::runtime {
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

std::bitset<CPU_SETSIZE> bits_of(const std::string& processors) {
  std::bitset<CPU_SETSIZE> set;
  for (std::size_t i = 0; i < std::min(processors.size() * 8, set.size()); ++i) {
    if ((static_cast<unsigned char>(processors[i / 8]) >> (i % 8) & 1) != 0) set.set(i);
  }
  return set;
}

}  // namespace

std::string own_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return {};  // the machine has more than CPU_SETSIZE processors
  return {reinterpret_cast<const char*>(&set), sizeof set};
}

double processor_share(const std::vector<std::string>& processors) {
  std::bitset<CPU_SETSIZE> all;
  for (const std::string& own : processors) all |= bits_of(own);
  const double count = all.any() ? static_cast<double>(all.count()) : std::max(1U, std::thread::hardware_concurrency());
  return std::min(count, control_group_quota(read_text("/proc/self/cgroup"), "/sys/fs/cgroup"));
}

bool has_processor_to_spin(const std::vector<std::string>& processors, double share, std::size_t rank) {
  const auto ranks = static_cast<double>(processors.size());
  const std::bitset<CPU_SETSIZE> own = bits_of(processors[rank]);
  if (share > ranks && (own.none() || own.count() > processors.size())) return true;  // none: it does not know its own
  bool is_alone = own.any();
  for (std::size_t other = 0; other < processors.size(); ++other)
    is_alone = is_alone && (other == rank || (bits_of(processors[other]) & own).none());
  return is_alone && share >= ranks;
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

}  // namespace runjob::runtime
