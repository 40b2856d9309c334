#include "launcher/elastic/host_changes.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"
#include "base/screen_text.hpp"
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

/// As for --add, with another number of slots.
std::string written(const Host& host, int slots) {
  const bool is_v6 = host.name.find(':') != std::string::npos;
  return fmt::format("{}{}{}:{}", host.user.empty() ? "" : host.user + "@", is_v6 ? "[" : "",
                     is_v6 ? host.name + "]" : host.name, slots);
}

std::string source_of_lists(const ElasticSettings& settings) {
  if (!settings.discovery_script.empty()) return "the discovery script";
  return settings.hostfile.empty() ? "" : "the hostfile";
}

}  // namespace

HostChanges::HostChanges(std::vector<Host> hosts, const ElasticSettings& settings, Membership& membership, Hooks hooks)
    : hosts_(std::move(hosts)),
      list_(hosts_),
      min_ranks_(settings.min_ranks),
      max_ranks_(settings.max_ranks),
      list_source_(source_of_lists(settings)),
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
  const Hosts hosts = wanted();
  if (const int slots = slots_of(hosts); ranks > std::max(slots, membership_.roll().ranks()) && list_source_.empty()) {
    const auto takes_more = [this](const Host& host) { return !membership_.is_ruled_out(index_of(host)); };
    const auto found = std::find_if(hosts.begin(), hosts.end(), takes_more);
    throw Error(Errc::kUsage,
                fmt::format("{} need {}, and the job's hosts have {}; add slots first: runjob resize JOB --add {}",
                            counted(ranks, "rank"), counted(ranks, "slot"), slots_text(hosts),
                            found == hosts.end() ? "HOST:SLOTS" : written(*found, found->slots + ranks - slots)));
  }
  max_ranks_ = ranks;
  membership_.resize(ranks, hooks_.now());
  hooks_.changed();
  return size_text();
}

std::string HostChanges::add(std::string_view list) {
  const Hosts hosts = parse_host_list(list, "--add");
  for (const Host& host : hosts) {
    if (const std::string why = hooks_.obstacle(host); !why.empty())
      throw Error(Errc::kUsage, fmt::format("--add: {} cannot join: {}", host.name, why));
  }
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
  if (slots_of(left) < min_ranks_)
    throw Error(Errc::kUsage, fmt::format("--remove: without {} the job has {}, fewer than the {} of --min-np",
                                          names_of(named), slots_text(left), counted(min_ranks_, "rank")));
  const auto has_member = [this](const Host& host) { return membership_.roll().has_member_on(index_of(host)); };
  std::vector<std::string> names;
  for (const Host& host : left) names.push_back(host.name);
  if (std::any_of(named.begin(), named.end(), has_member) && std::none_of(left.begin(), left.end(), has_member))
    throw Error(Errc::kUsage,
                fmt::format("--remove: all ranks run on {}, and the job's state is lost with them; remove "
                            "it when {} has a rank",
                            names_of(named), fmt::join(names, " or ")));
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

/// By which Membership knows one of the job's hosts.
int HostChanges::index_of(const Host& host) const {
  return static_cast<int>(find(hosts_, host) - hosts_.begin());
}

/// The slots that processes have or may get.
int HostChanges::slots_of(const Hosts& hosts) const {
  int slots = 0;
  for (const Host& host : hosts) {
    const int index = index_of(host);
    slots += membership_.is_ruled_out(index) ? membership_.roll().staying_on(index) : host.slots;
  }
  return slots;
}

/// "6 slots", "2 slots (no process starts on s3)"
std::string HostChanges::slots_text(const Hosts& hosts) const {
  Hosts others;
  for (const Host& host : hosts) {
    if (membership_.is_ruled_out(index_of(host))) others.push_back(host);
  }
  const std::string note = others.empty() ? "" : fmt::format(" (no process starts on {})", names_of(others));
  return counted(slots_of(hosts), "slot") + note;
}

/// "the job has 4 ranks and may have 8, and its hosts have 6 slots"
std::string HostChanges::size_text() const {
  const Hosts hosts = wanted();
  const int slots = slots_of(hosts);
  std::string more;
  if (slots > max_ranks_) more = "; runjob resize JOB -np N lets it have more";
  if (slots < max_ranks_ && !list_source_.empty()) more = fmt::format("; it grows when {} lists more", list_source_);
  return fmt::format("the job has {} and may have {}, and its hosts have {}{}",
                     counted(membership_.roll().ranks(), "rank"), max_ranks_, slots_text(hosts), more);
}

}  // namespace runjob
