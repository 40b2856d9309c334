#include "launcher/output/status_line.hpp"

#include <map>
#include <utility>

#include <fmt/format.h>

#include "hostfile/rank_list.hpp"

namespace runjob {
namespace {

constexpr std::size_t kShownHosts = 3;  // of those that are waited for

const char* word_for(StatusLine::HostPhase phase) {
  switch (phase) {
    case StatusLine::HostPhase::kWaiting:
      return "waiting for its turn";
    case StatusLine::HostPhase::kResolving:
      return "looking up its address";
    case StatusLine::HostPhase::kConnecting:
      return "connecting";
    case StatusLine::HostPhase::kStartingAgent:
      return "starting the agent";
    case StatusLine::HostPhase::kReady:
      return "ready";
  }
  return "";
}

/// The first of `texts`, and how many more there are.
std::string first_of(const std::vector<std::string>& texts) {
  std::string result;
  for (std::size_t i = 0; i < texts.size() && i < kShownHosts; ++i) result += (i == 0 ? "" : ", ") + texts[i];
  if (texts.size() > kShownHosts) result += fmt::format(" and {} more", texts.size() - kShownHosts);
  return result;
}

}  // namespace

StatusLine::StatusLine(const Allocation& allocation)
    : allocation_(allocation),
      hosts_(allocation.hosts.size(), HostPhase::kWaiting),
      ranks_(allocation.placements.size(), RankPhase::kNotStarted) {}

void StatusLine::host(int host, HostPhase phase) {
  HostPhase& current = hosts_.at(static_cast<std::size_t>(host));
  if (current != HostPhase::kReady && phase == HostPhase::kReady) ++ready_;
  current = phase;
}

void StatusLine::rank_started(int rank) {
  if (std::cmp_greater_equal(rank, ranks_.size())) return;
  RankPhase& current = ranks_[static_cast<std::size_t>(rank)];
  if (current != RankPhase::kNotStarted) return;
  current = RankPhase::kStarted;
  ++started_;
}

void StatusLine::rank_joined(int rank) {
  rank_started(rank);
  if (std::cmp_greater_equal(rank, ranks_.size())) return;
  RankPhase& current = ranks_[static_cast<std::size_t>(rank)];
  if (current == RankPhase::kStarted) ++joined_;
  current = RankPhase::kJoined;
}

void StatusLine::rank_ended(int) {
  ended_ = true;
}

bool StatusLine::waiting() const {
  if (ended_) return false;
  return started_ < ranks_.size() || (joined_ > 0 && joined_ < ranks_.size());
}

std::string StatusLine::text() const {
  if (!waiting()) return "";
  if (started_ == 0 && ready_ < hosts_.size()) return hosts_text();
  if (started_ < ranks_.size()) {
    return fmt::format("ranks: {} of {} started, {}", started_, ranks_.size(), waiting_for(RankPhase::kNotStarted));
  }
  return fmt::format("init: {} of {} ranks, {}", joined_, ranks_.size(), waiting_for(RankPhase::kStarted));
}

std::string StatusLine::hosts_text() const {
  std::vector<std::string> missing;
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    if (hosts_[i] == HostPhase::kReady) continue;
    missing.push_back(fmt::format("{} ({})", allocation_.hosts[i].name, word_for(hosts_[i])));
  }
  return fmt::format("hosts: {} of {} ready, waiting for {}", ready_, hosts_.size(), first_of(missing));
}

std::string StatusLine::waiting_for(RankPhase phase) const {
  std::map<int, std::vector<int>> missing;  // by host
  for (const Placement& placement : allocation_.placements) {
    if (ranks_[static_cast<std::size_t>(placement.rank)] == phase) missing[placement.host].push_back(placement.rank);
  }
  std::vector<std::string> texts;
  for (const auto& [host, ranks] : missing) {
    const std::string& name = allocation_.hosts.at(static_cast<std::size_t>(host)).name;
    texts.push_back(fmt::format("{} on {}", ranks_text(ranks), name));
  }
  return "waiting for " + first_of(texts);
}

}  // namespace runjob
