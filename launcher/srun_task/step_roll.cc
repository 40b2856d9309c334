#include "launcher/srun_task/step_roll.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "hostfile/rank_list.hpp"

namespace runjob {

StepRoll::StepRoll(std::string step, int size)
    : step_(std::move(step)), missing_(size), tasks_(static_cast<std::size_t>(size)) {}

void StepRoll::add(const StepHello& hello, const std::string& from, const std::string& at) {
  const int size = static_cast<int>(tasks_.size());
  if (hello.step != step_ || hello.size != size)
    throw Error(Errc::kProtocol, fmt::format("a task of step {} with {} tasks came to step {} with {}", hello.step,
                                             hello.size, step_, size));
  if (hello.rank < 0 || hello.rank >= size || hello.node < 0 || hello.node >= size)
    throw Error(Errc::kProtocol,
                fmt::format("task {} on node {} cannot be of a step with {} tasks", hello.rank, hello.node, size));
  std::optional<StepHello>& task = tasks_[static_cast<std::size_t>(hello.rank)];
  if (task) throw Error(Errc::kProtocol, fmt::format("task {} came twice", hello.rank));
  task = hello;
  --missing_;
  const auto node = static_cast<std::size_t>(hello.node);
  if (nodes_.size() <= node) nodes_.resize(node + 1);
  nodes_[node].name = hello.node_name;
  if (from == at) return;  // from our own node
  nodes_[node].address = from;
  own_address_ = at;
}

std::string StepRoll::missing() const {
  std::vector<int> ranks;
  for (std::size_t i = 0; i < tasks_.size(); ++i) {
    if (!tasks_[i]) ranks.push_back(static_cast<int>(i));
  }
  return rank_list(ranks);
}

Allocation StepRoll::allocation() const {
  std::vector<Host> hosts(nodes_.size());
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    hosts[i].name = nodes_[i].name;
    hosts[i].slots = 0;
  }
  std::vector<int> host_of_rank;
  for (const auto& task : tasks_) {
    host_of_rank.push_back(task->node);
    ++hosts[static_cast<std::size_t>(task->node)].slots;
  }
  return place_ranks(hosts, host_of_rank);
}

std::string StepRoll::address_of(int rank) const {
  const int node = tasks_.at(static_cast<std::size_t>(rank))->node;
  const bool own = node == tasks_.front()->node;
  return own ? own_address_ : nodes_.at(static_cast<std::size_t>(node)).address;
}

}  // namespace runjob
