#include "launcher/elastic/host_changes.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"
#include "hostfile/merge_hosts.hpp"
#include "hostfile/parse_hosts.hpp"

namespace runjob {
namespace {

using Hosts = std::vector<Host>;

Hosts::const_iterator find(const Hosts& hosts, const Host& wanted) {
  return std::find_if(hosts.begin(), hosts.end(), [&](const Host& host) { return is_same_host(host, wanted); });
}

bool has(const Hosts& hosts, const Host& wanted) {
  return find(hosts, wanted) != hosts.end();
}

std::string names_of(const Hosts& hosts) {
  std::vector<std::string> names;
  for (const Host& host : hosts) names.push_back(host.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

HostChanges::HostChanges(std::vector<Host> hosts, const ElasticSettings& settings, Membership& membership, Hooks hooks)
    : hosts_(std::move(hosts)),
      list_(hosts_),
      min_ranks_(settings.min_ranks),
      max_ranks_(settings.max_ranks),
      membership_(membership),
      hooks_(std::move(hooks)) {}

void HostChanges::set_list(const std::vector<Host>& list) {
  list_ = list;
  apply({});
}

std::string HostChanges::resize(int ranks) {
  if (ranks < min_ranks_)
    throw Error(Errc::kUsage,
                fmt::format("{} is below the {} of --min-np, with which the job was started", ranks, min_ranks_));
  max_ranks_ = ranks;
  membership_.resize(ranks, hooks_.now());
  hooks_.changed();
  return size_text();
}

std::string HostChanges::add(std::string_view list) {
  const Hosts hosts = parse_host_list(list, "--add");
  for (const Host& host : hosts) {
    std::erase_if(removed_, [&host](const Host& each) { return is_same_host(each, host); });
    if (!has(list_, host) || has(added_, host)) {
      std::erase_if(added_, [&host](const Host& each) { return is_same_host(each, host); });
      added_.push_back(host);
    } else {  // it is back, or it has this number of slots from now on
      const auto found = list_.begin() + (find(list_, host) - list_.cbegin());
      found->slots = host.slots;
    }
  }
  apply(hosts);
  return fmt::format("{} added; {}", names_of(hosts), size_text());
}

std::string HostChanges::remove(std::string_view list) {
  const Hosts named = parse_host_list(list, "--remove");
  const Hosts now = wanted();
  for (const Host& host : named) {
    if (has(now, host)) continue;
    throw Error(Errc::kUsage,
                fmt::format("--remove: {} is no host of the job; its hosts are {}", host.name, names_of(now)));
  }
  Hosts left = now;
  for (const Host& host : named) std::erase_if(left, [&host](const Host& each) { return is_same_host(each, host); });
  if (count_slots(left) < min_ranks_)
    throw Error(Errc::kUsage,
                fmt::format("--remove: without {} the job has {} slots, fewer than the {} ranks of --min-np",
                            names_of(named), count_slots(left), min_ranks_));
  removed_.insert(removed_.end(), named.begin(), named.end());
  apply({});
  return fmt::format("{} removed; {}", names_of(named), size_text());
}

/// Hosts whose slots have not changed are left alone.
void HostChanges::apply(const std::vector<Host>& forgiven) {
  const Hosts list = wanted();
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    const auto found = find(list, hosts_[i]);
    const int slots = found == list.end() ? 0 : found->slots;
    if (found != list.end()) hosts_[i] = *found;
    const auto host = static_cast<int>(i);
    const ProcessRoll::HostState& state = membership_.roll().hosts.at(host);
    const bool is_forgiven = has(forgiven, hosts_[i]);
    if (!is_forgiven && (state.usable ? state.slots : 0) == slots) continue;
    membership_.set_host(host, hosts_[i].name, slots, hooks_.now(), is_forgiven);
  }
  for (const Host& host : list) {
    if (has(hosts_, host)) continue;
    hosts_.push_back(host);
    hooks_.add(host);
    membership_.set_host(static_cast<int>(hosts_.size()) - 1, host.name, host.slots, hooks_.now());
  }
  hooks_.changed();
}

std::vector<Host> HostChanges::wanted() const {
  Hosts result = list_;
  for (const Host& host : added_) {
    if (!has(result, host)) result.push_back(host);
  }
  std::erase_if(result, [this](const Host& host) { return has(removed_, host); });
  return result;
}

int HostChanges::slots() const {
  return count_slots(wanted());
}

/// "the job has 4 ranks and may have 8, and its hosts have 6 slots"
std::string HostChanges::size_text() const {
  const std::string more = slots() > max_ranks_ ? "; runjob resize JOB -np N lets it have more" : "";
  return fmt::format("the job has {} ranks and may have {}, and its hosts have {} slots{}", membership_.roll().ranks(),
                     max_ranks_, slots(), more);
}

}  // namespace runjob
