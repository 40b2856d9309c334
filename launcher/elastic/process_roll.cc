#include "launcher/elastic/process_roll.hpp"

#include <algorithm>
#include <iterator>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

namespace runjob {

int ProcessRoll::host_of(int process) const {
  const auto found = processes.find(process);
  return found == processes.end() ? -1 : found->second.host;
}

int ProcessRoll::rank_of(int process) const {
  const auto found = processes.find(process);
  return found == processes.end() ? -1 : found->second.rank;
}

bool ProcessRoll::was_member(int process) const {
  const auto found = processes.find(process);
  return found != processes.end() && found->second.was_member();
}

std::string ProcessRoll::name_of(int process) const {
  const auto found = processes.find(process);
  if (found == processes.end()) return "an unknown process";
  const std::string& host = hosts.at(found->second.host).name;
  const int rank = std::max(found->second.rank, found->second.absent_rank);
  return rank < 0 ? fmt::format("a new process on {}", host) : fmt::format("rank {} on {}", rank, host);
}

int ProcessRoll::free_local_rank(int host) const {
  std::set<int> taken;
  for (const auto& [number, process] : processes) {
    if (process.host == host) taken.insert(process.local_rank);
  }
  int free = 0;
  while (taken.contains(free)) ++free;
  return free;
}

int ProcessRoll::count_on(int host) const {
  return static_cast<int>(
      std::count_if(processes.begin(), processes.end(), [host](const auto& each) { return each.second.host == host; }));
}

ProcessRoll::HostNumber ProcessRoll::number_of_host(int host) const {
  std::set<int> used;
  for (const auto& [number, process] : processes) {
    if (process.stays()) used.insert(process.host);
  }
  const auto before = std::distance(used.begin(), used.lower_bound(host));
  return {static_cast<int>(before), static_cast<int>(used.size())};
}

int ProcessRoll::staying() const {
  return static_cast<int>(
      std::count_if(processes.begin(), processes.end(), [](const auto& each) { return each.second.stays(); }));
}

int ProcessRoll::staying_on(int host) const {
  return static_cast<int>(std::count_if(processes.begin(), processes.end(), [host](const auto& each) {
    return each.second.host == host && each.second.stays();
  }));
}

bool ProcessRoll::has_member_on(int host) const {
  return std::any_of(processes.begin(), processes.end(), [host](const auto& each) {
    return each.second.host == host && each.second.stays() && each.second.rank >= 0;
  });
}

int ProcessRoll::ranks() const {
  return static_cast<int>(
      std::count_if(processes.begin(), processes.end(), [](const auto& each) { return each.second.rank >= 0; }));
}

int ProcessRoll::ready_newcomers() const {
  return static_cast<int>(std::count_if(processes.begin(), processes.end(), [](const auto& each) {
    return each.second.is_newcomer() && each.second.ready;
  }));
}

bool ProcessRoll::any_on_its_way() const {
  return std::any_of(processes.begin(), processes.end(),
                     [](const auto& each) { return each.second.is_newcomer() && !each.second.ready; });
}

std::vector<int> ProcessRoll::surplus_on(int host) const {
  const HostState& state = hosts.at(host);
  std::vector<int> here;
  for (const auto& [number, process] : processes) {
    if (process.host == host && process.stays()) here.push_back(number);
  }
  const int room = state.usable ? state.slots : 0;
  if (std::ssize(here) <= room) return {};
  std::stable_sort(here.begin(), here.end(),
                   [this](int a, int b) { return processes.at(a).local_rank < processes.at(b).local_rank; });
  std::vector<int> result(here.begin() + room, here.end());
  std::reverse(result.begin(), result.end());
  return result;
}

std::vector<int> ProcessRoll::surplus(int ranks, int spares) const {
  std::vector<int> members, newcomers;
  for (const auto& [number, process] : processes) {
    if (process.stays()) (process.rank >= 0 ? members : newcomers).push_back(number);
  }
  std::sort(members.begin(), members.end(),
            [this](int a, int b) { return processes.at(a).rank < processes.at(b).rank; });
  std::vector<int> result;
  const auto most_members = static_cast<std::size_t>(ranks);
  while (members.size() > most_members) {
    result.push_back(members.back());
    members.pop_back();
  }
  const std::size_t most_newcomers = most_members - members.size() + static_cast<std::size_t>(spares);
  while (newcomers.size() > most_newcomers) {
    result.push_back(newcomers.back());
    newcomers.pop_back();
  }
  return result;
}

void ProcessRoll::make_newcomers_of_absent_members() {
  for (auto& [number, process] : processes) {
    if (!process.entered) process.absent_rank = std::exchange(process.rank, -1);
  }
}

std::int64_t ProcessRoll::steps_since(std::int64_t newest) const {
  std::int64_t steps = -1;
  for (const auto& [number, process] : processes) {
    if (process.rank >= 0 && process.ready && process.stays() && process.commit == newest)
      steps = std::max(steps, process.steps);
  }
  return steps;
}

std::vector<int> ProcessRoll::ready_in_order() const {
  std::vector<int> next;
  for (const auto& [number, process] : processes) {
    if (process.ready && process.stays()) next.push_back(number);
  }
  const auto order = [this](int number) {
    const int rank = processes.at(number).rank;
    return std::tuple(rank < 0, rank, number);  // members before newcomers
  };
  std::sort(next.begin(), next.end(), [&](int a, int b) { return order(a) < order(b); });
  const auto newest = std::max_element(
      next.begin(), next.end(), [this](int a, int b) { return processes.at(a).commit < processes.at(b).commit; });
  if (newest != next.end()) std::rotate(next.begin(), newest, newest + 1);
  return next;
}

}  // namespace runjob
