#include "launcher/agent/placement/cpu_topology.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <dirent.h>
#include <fstream>
#include <map>
#include <sched.h>
#include <string_view>
#include <tuple>

#include "base/process/processor_quota.hpp"
#include "base/unique_handle.hpp"

namespace runjob {
namespace {

using UniqueDirectory = UniqueHandle<DIR*, ::closedir, nullptr>;

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

/// -1 when `text` does not begin with a number.
int leading_number(std::string_view& text) {
  int number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return -1;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

/// CPU -> NUMA node.
std::map<int, int> numa_nodes(const std::string& root) {
  std::map<int, int> result;
  const std::string folder = root + "/devices/system/node";
  const UniqueDirectory directory(::opendir(folder.c_str()));
  if (!directory) return result;
  while (const dirent* entry = ::readdir(directory.get())) {
    std::string_view name = entry->d_name;
    if (!name.starts_with("node")) continue;
    name.remove_prefix(4);
    const int node = leading_number(name);
    if (node < 0 || !name.empty()) continue;
    for (const int cpu : parse_cpu_list(first_line(folder + "/" + entry->d_name + "/cpulist"))) result[cpu] = node;
  }
  return result;
}

}  // namespace

std::vector<int> parse_cpu_list(const std::string& text) {
  constexpr int kMost = 1 << 16;
  std::vector<int> result;
  for (std::string_view rest = text; !rest.empty();) {
    const int first = leading_number(rest);
    int last = first;
    if (rest.starts_with('-')) {
      rest.remove_prefix(1);
      last = leading_number(rest);
    }
    const bool separated = rest.empty() || rest.front() == ',';
    if (first < 0 || last < first || last >= kMost || !separated) return {};
    for (int cpu = first; cpu <= last; ++cpu) result.push_back(cpu);
    rest.remove_prefix(rest.empty() ? 0 : 1);
  }
  return result;
}

std::vector<int> affinity() {
  std::vector<int> result;
  for (std::size_t cpus = 1024; cpus <= (1u << 16); cpus *= 2) {  // the kernel's own size is not known before
    std::vector<unsigned long> mask(cpus / (8 * sizeof(unsigned long)), 0);
    auto* set = reinterpret_cast<cpu_set_t*>(mask.data());
    const std::size_t bytes = cpus / 8;
    if (::sched_getaffinity(0, bytes, set) != 0) continue;
    for (std::size_t cpu = 0; cpu < cpus; ++cpu) {
      if (CPU_ISSET_S(cpu, bytes, set)) result.push_back(static_cast<int>(cpu));
    }
    break;
  }
  return result;
}

int usable_cores() {
  const auto cores = static_cast<double>(affinity().size());
  return std::max(1, static_cast<int>(std::min(cores, std::ceil(processor_quota()))));
}

std::vector<Cpu> usable_cpus(const std::string& root) {
  const std::map<int, int> nodes = numa_nodes(root);
  std::vector<Cpu> result;
  for (const int number : affinity()) {
    const std::string folder = root + "/devices/system/cpu/cpu" + std::to_string(number) + "/topology/";
    const std::vector<int> siblings = parse_cpu_list(first_line(folder + "thread_siblings_list"));
    const std::string package = first_line(folder + "physical_package_id");
    std::string_view socket = package;
    Cpu& cpu = result.emplace_back();
    cpu.number = number;
    cpu.core = siblings.empty() ? number : *std::min_element(siblings.begin(), siblings.end());
    cpu.socket = std::max(0, leading_number(socket));  // -1 if the firmware does not give it
    const auto node = nodes.find(number);
    cpu.numa = node == nodes.end() ? 0 : node->second;
  }
  std::sort(result.begin(), result.end(), [](const Cpu& a, const Cpu& b) {
    return std::tie(a.socket, a.numa, a.core, a.number) < std::tie(b.socket, b.numa, b.core, b.number);
  });
  return result;
}

}  // namespace runjob
