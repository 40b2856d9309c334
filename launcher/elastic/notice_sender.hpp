#pragma once

#include <functional>
#include <string>
#include <utility>

#include "rendezvous/protocol.hpp"

namespace runjob {

/// The notice to the processes of an elastic job, which is sent whenever it changes.
/// Pure     but for the function that it is given.
/// Threads  one.
class NoticeSender {
 public:
  explicit NoticeSender(std::function<void(const rendezvous::Notice& notice)> send) : send_(std::move(send)) {}

  /// The collectives of the generation fail. Has an effect once for each generation.
  void end(int generation, const std::string& why);
  /// The members leave the generation at their next commit. `only_added`: processes were only added.
  void outdate(int generation, bool only_added);
  /// The process is to end at its next commit. Part of the notice of the next outdate().
  void let_go(int process) { notice_.leaving.push_back(process); }

  bool has_ended(int generation) const { return notice_.ended >= generation; }
  bool is_outdated(int generation) const { return notice_.outdated >= generation; }

 private:
  void send();

  const std::function<void(const rendezvous::Notice& notice)> send_;
  rendezvous::Notice notice_;
};

}  // namespace runjob
