#include "runtime/life/stall_verdict.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include <fmt/format.h>

namespace runjob::runtime {
namespace {

constexpr std::size_t kMostNamed = 8;  // a line that can still be read

/// The operations in which ranks wait, and the ranks that each of them waits for.
class WaitGraph {
 public:
  struct Operation {
    std::string name;
    std::vector<int> ready, missing;
  };

  explicit WaitGraph(const std::vector<std::vector<Wait>>& waits) : of_rank_(waits.size()) {
    std::map<std::pair<int, std::string>, std::size_t> known;
    std::map<std::size_t, std::vector<int>> members;
    for (std::size_t rank = 0; rank < waits.size(); ++rank) {
      for (const Wait& wait : waits[rank]) {
        const auto [found, is_new] = known.try_emplace({wait.process_set, wait.operation}, operations_.size());
        if (is_new) {
          operations_.push_back({wait.operation, {}, {}});
          sets_.push_back(wait.process_set);
          members[found->second] = ranks_of(wait);
        }
        operations_[found->second].ready.push_back(static_cast<int>(rank));
        of_rank_[rank].push_back(found->second);
        if (wait.is_join) joined_[wait.process_set].insert(static_cast<int>(rank));
      }
    }
    for (const auto& [operation, ranks] : members) find_missing(operation, ranks);
  }

  const Operation& operation(std::size_t index) const { return operations_[index]; }
  /// Indices of the operations in which the rank waits.
  const std::vector<std::size_t>& of(int rank) const { return of_rank_[static_cast<std::size_t>(rank)]; }
  bool waits(int rank) const { return !of(rank).empty(); }

  /// The ranks on the way from `start` along the waits, the nearest first, each with the rank that waits for it.
  std::vector<std::pair<int, int>> reached_from(int start) const {
    std::vector<std::pair<int, int>> reached{{start, -1}};
    std::set<int> seen{start};
    std::set<std::size_t> seen_operations;
    for (std::size_t next = 0; next < reached.size(); ++next) {
      std::set<int> missing;
      for (const std::size_t each : of(reached[next].first)) {
        if (seen_operations.insert(each).second)
          missing.insert(operations_[each].missing.begin(), operations_[each].missing.end());
      }
      for (const int rank : missing) {
        if (seen.insert(rank).second) reached.emplace_back(rank, reached[next].first);
      }
    }
    return reached;
  }

 private:
  std::vector<int> ranks_of(const Wait& wait) const {
    std::vector<int> ranks(of_rank_.size());
    std::iota(ranks.begin(), ranks.end(), 0);
    if (wait.process_set == 0) return ranks;
    std::erase_if(ranks,
                  [&](int rank) { return std::find(wait.ranks.begin(), wait.ranks.end(), rank) == wait.ranks.end(); });
    return ranks;
  }

  void find_missing(std::size_t index, const std::vector<int>& members) {
    Operation& operation = operations_[index];
    const std::set<int>& joined = joined_[sets_[index]];
    std::set_difference(members.begin(), members.end(), operation.ready.begin(), operation.ready.end(),
                        std::back_inserter(operation.missing));
    std::erase_if(operation.missing, [&](int rank) { return joined.contains(rank); });
  }

  std::vector<Operation> operations_;
  std::vector<int> sets_;  ///< by operation
  std::vector<std::vector<std::size_t>> of_rank_;
  std::map<int, std::set<int>> joined_;  ///< by process set
};

/// The ranks among `candidates` that wait for each other, each with the operation in which it does: what is left when
/// ranks are taken away that wait for none of the others, and ranks that none of the others waits for.
std::map<int, std::size_t> find_circle(const WaitGraph& graph, std::set<int> candidates) {
  std::map<int, std::size_t> circle;
  for (bool has_changed = true; has_changed;) {
    circle.clear();
    std::set<int> awaited;
    std::map<std::size_t, bool> waits_for_candidate;  // by operation, each looked at once
    for (const int rank : candidates) {
      for (const std::size_t each : graph.of(rank)) {
        const auto [waits, is_new] = waits_for_candidate.try_emplace(each, false);
        for (const int missing : graph.operation(each).missing) {
          if (!is_new) break;
          if (!candidates.contains(missing)) continue;
          waits->second = true;
          awaited.insert(missing);
        }
        if (waits->second) circle.try_emplace(rank, each);
      }
    }
    has_changed =
        std::erase_if(candidates, [&](int rank) { return !circle.contains(rank) || !awaited.contains(rank); }) != 0;
  }
  return circle;
}

/// "rank 0 on a waits in allreduce 'x'", "ranks 1 (b), 2 (b) wait in allreduce 'y'"; later ones without the verb.
std::string waiting_text(const std::vector<int>& ranks, const std::string& operation, bool is_first,
                         const Members& members) {
  const char* verb = !is_first ? "" : ranks.size() == 1 ? " waits" : " wait";
  if (ranks.size() == 1) return fmt::format("{}{} in {}", rank_text(ranks.front(), members), verb, operation);
  std::string names;
  for (std::size_t i = 0; i < std::min(ranks.size(), kMostNamed); ++i)
    names += fmt::format("{}{} ({})", i == 0 ? "" : ", ", members.rank(ranks[i]), members.host(ranks[i]));
  if (ranks.size() > kMostNamed) names += fmt::format(" and {} more", ranks.size() - kMostNamed);
  return fmt::format("ranks {}{} in {}", names, verb, operation);
}

std::string circle_text(const std::map<int, std::size_t>& circle, const WaitGraph& graph, const Members& members) {
  std::vector<std::pair<std::size_t, std::vector<int>>> groups;  // by operation, in the order of the first ranks
  for (const auto& [rank, operation] : circle) {
    auto group = std::find_if(groups.begin(), groups.end(), [&](const auto& each) { return each.first == operation; });
    if (group == groups.end()) group = groups.insert(groups.end(), {operation, {}});
    group->second.push_back(rank);
  }
  std::string text;
  const std::size_t named = std::min(groups.size(), kMostNamed);
  for (std::size_t i = 0; i < named; ++i) {
    const bool is_last = i + 1 == groups.size();
    text += fmt::format("{}{}",
                        i == 0    ? ""
                        : is_last ? " and "
                                  : ", ",
                        waiting_text(groups[i].second, graph.operation(groups[i].first).name, i == 0, members));
  }
  if (named < groups.size()) text += fmt::format(" and others in {} more operations", groups.size() - named);
  return text;
}

/// "; rank 1 on a waits itself in allreduce 'y' for rank 2 on b", for each rank between the operation and the late one.
std::string chain_text(const std::vector<std::pair<int, int>>& reached, int late, const WaitGraph& graph,
                       const Members& members) {
  std::deque<int> chain{late};
  const auto waits_for = [&](int rank) {
    return std::find_if(reached.begin(), reached.end(), [&](const auto& each) { return each.first == rank; })->second;
  };
  for (int rank = waits_for(late); rank >= 0; rank = waits_for(rank)) chain.push_front(rank);
  std::string text;
  for (std::size_t i = 1; i + 1 < chain.size(); ++i) {
    for (const std::size_t each : graph.of(chain[i])) {
      const std::vector<int>& missing = graph.operation(each).missing;
      if (std::find(missing.begin(), missing.end(), chain[i + 1]) == missing.end()) continue;
      text += fmt::format("; {} waits itself in {} for {}", rank_text(chain[i], members), graph.operation(each).name,
                          rank_text(chain[i + 1], members));
      break;
    }
  }
  return text;
}

}  // namespace

StallVerdict judge_stall(const Stall& stall, const std::vector<std::vector<Wait>>& waits, const Members& members) {
  const WaitGraph graph(waits);
  const std::vector<std::pair<int, int>> reached = graph.reached_from(stall.rank);
  std::set<int> ranks;
  for (const auto& [rank, from] : reached) ranks.insert(rank);
  if (const auto circle = find_circle(graph, std::move(ranks)); !circle.empty()) {
    return {Status(stall.status.code(),
                   fmt::format("{}: the ranks take different steps, or the same ones in another order; see join(). "
                               "Waits may not be longer than --stall-check-shutdown-time-seconds "
                               "(RUNJOB_STALL_SHUTDOWN_TIME_SECONDS)",
                               circle_text(circle, graph, members))),
            -1, true};
  }
  const auto is_late = [&](const std::pair<int, int>& each) {
    return each.first != stall.rank && !graph.waits(each.first);
  };
  const bool knows_late = std::any_of(reached.begin(), reached.end(),
                                      [&](const auto& each) { return each.first == stall.late && is_late(each); });
  const auto first = std::find_if(reached.begin(), reached.end(), is_late);
  if (knows_late || first == reached.end()) return {stall.status, stall.late, false};
  return {Status(stall.status.code(), stall.status.message() + chain_text(reached, first->first, graph, members)),
          first->first, false};
}

}  // namespace runjob::runtime
