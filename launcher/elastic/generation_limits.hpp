#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "launcher/job_spec/elastic_settings.hpp"

namespace runjob {

/// Decides whether an elastic job may form another generation: --reset-limit, and the rule that generations which ranks
/// end by failures of their own must bring commits.
/// Pure.
/// Threads  one.
class GenerationLimits {
 public:
  /// The generation that is to be formed.
  struct Next {
    std::int64_t newest_commit = -1;
    int newcomers = 0;
    bool after_loss = false;   ///< the one before ended by the loss of a member, or by a failure
    bool own_failure = false;  ///< the one before ended by a failure of a rank's own
  };

  GenerationLimits(std::optional<int> reset_limit, bool as_horovod)
      : reset_limit_(reset_limit), as_horovod_(as_horovod) {}

  /// Members were lost, for which newcomers will come.
  void lost(int members) { unreplaced_ += members; }
  /// Returns the reason why the job cannot go on; "" if the generation may be formed. A loss and the growth that
  /// replaces the lost ranks are one reset, except as Horovod counts.
  std::string refuse(const Next& next, const std::string& cause);
  /// How long to wait with the next generation when the present one has ended because members lost each other: the
  /// network between them may have failed for a moment. Returns a second more after each generation without a
  /// commit, and nothing after one with a commit. `newest`: the newest commit of the members.
  std::chrono::seconds pause(std::int64_t newest) const {
    return std::chrono::seconds(newest > newest_commit_ ? 0 : without_progress_ + 1);
  }
  /// The generation is formed.
  void formed(std::int64_t newest_commit) { newest_commit_ = newest_commit; }

 private:
  bool counts_as_reset(const Next& next);

  const std::optional<int> reset_limit_;
  const bool as_horovod_;
  int resets_ = 0;
  int unreplaced_ = 0;  // members that were lost and have no successor yet
  int without_progress_ = 0;
  std::int64_t newest_commit_ = -1;  // when the present generation was formed
};

}  // namespace runjob
