#pragma once

#include <optional>
#include <string>
#include <vector>

#include "hostfile/allocation.hpp"
#include "launcher/srun_task/step_messages.hpp"

namespace runjob {

/// The tasks of a step that have announced themselves to task 0, and, once all have, which rank is on which node. Pure.
/// Threads  one.
class StepRoll {
 public:
  StepRoll(std::string step, int size);

  /// `from`: the numeric address of the task; `at`: the address of this node that it has reached. Errors
  /// Error(kProtocol) for a hello of another step or size, of a rank that has announced itself before, or with numbers
  /// out of range.
  void add(const StepHello& hello, const std::string& from, const std::string& at);

  bool complete() const { return missing_ == 0; }
  /// The ranks that have not announced themselves: "3, 5-7".
  std::string missing() const;

  /// Requires complete().
  Allocation allocation() const;
  /// The address by which the other nodes reach the node of `rank`; "" if there is only one node.
  std::string address_of(int rank) const;
  int free_port() const { return tasks_.front()->free_port; }

 private:
  struct Node {
    std::string name;
    std::string address;
  };

  const std::string step_;
  int missing_;
  std::vector<std::optional<StepHello>> tasks_;  // by rank
  std::vector<Node> nodes_;
  std::string own_address_;  // by which another node has reached this one
};

}  // namespace runjob
