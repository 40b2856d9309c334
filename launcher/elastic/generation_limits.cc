#include "launcher/elastic/generation_limits.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "launcher/job_spec/horovod_words.hpp"

namespace runjob {
namespace {

/// The job ends when this many generations in a row have had no commit and were each ended by a rank's own failure.
constexpr int kMostWithoutProgress = 5;

}  // namespace

std::string GenerationLimits::refuse(const Next& next, const std::string& cause) {
  const bool progress = next.newest_commit > newest_commit_;
  without_progress_ = next.own_failure && !progress ? without_progress_ + 1 : 0;
  if (without_progress_ >= kMostWithoutProgress && !as_horovod_) {
    return fmt::format(
        "{} generations in a row have ended by a failure before their first commit, the last one because {}",
        without_progress_, cause);
  }
  if (counts_as_reset(next) && reset_limit_ && ++resets_ > *reset_limit_) {
    return as_horovod_ ? fmt::format("{}; the last one because {}", horovod_reset_words(*reset_limit_), cause)
                       : fmt::format("the {} new generations of --reset-limit are used up: {}", *reset_limit_, cause);
  }
  return "";
}

bool GenerationLimits::counts_as_reset(const Next& next) {
  const bool only_replaces = next.newcomers > 0 && next.newcomers <= unreplaced_ && !next.after_loss;
  unreplaced_ = std::max(0, unreplaced_ - next.newcomers);
  return as_horovod_ || !only_replaces;
}

}  // namespace runjob
