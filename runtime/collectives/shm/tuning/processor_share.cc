#include "runtime/collectives/shm/tuning/processor_share.hpp"

#include <algorithm>
#include <bitset>
#include <sched.h>
#include <thread>
#include <vector>

#include "base/process/processor_quota.hpp"

namespace runjob::runtime {
namespace {

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
  return std::min(count, processor_quota());
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

}  // namespace runjob::runtime
