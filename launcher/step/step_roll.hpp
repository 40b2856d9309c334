#pragma once

#include <optional>
#include <string>
#include <vector>

#include "hostfile/allocation.hpp"
#include "launcher/step/step_messages.hpp"

namespace runjob {

/// The tasks of a step that have come to task 0, until all have; then which rank is on which node. Pure.
/// Threads  one.
class StepRoll {
 public:
  StepRoll(std::string step, int size);

  /// `from`: the numeric address from which it came, `at`: the one of ours at which. Errors  Error(kProtocol) when it is of
  /// another step or size, or its rank has come before, or its numbers make no sense.
  void add(const StepHello& hello, const std::string& from, const std::string& at);

  bool complete() const { return missing_ == 0; }
  /// "3, 5-7", of those that have not come.
  std::string missing() const;

  /// When complete.
  Allocation allocation() const;
  /// By which address the other nodes reach the one of `rank`; "" when there is only one.
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
  std::string own_address_;  // as another node has reached it
};

}  // namespace runjob
