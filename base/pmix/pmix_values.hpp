#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "base/pmix/pmix_library.hpp"
#include "base/pmix/pmix_promise.hpp"

/// The values that the processes of a PMIx job publish for each other. The process must have called PMIx_Init.
namespace runjob {

/// Publishes `bytes` for all processes of the job, from the next commit on.
pmix::Status put_pmix_value(const PmixLibrary& library, const std::string& key, const std::string& bytes);

/// A request for a value that a process has published, or will publish. libpmix's thread receives the answer, perhaps
/// after the question is gone. A server may answer for a process that publishes later, or refuse at once.
/// Threads  one at a time.
class PmixQuestion {
 public:
  struct Answer {
    pmix::Status status = pmix::kSuccess;
    std::string bytes;         ///< of a byte object
    std::uint32_t number = 0;  ///< of a uint32
  };

  /// `self`: as PMIx_Init has set it. `rank`: who publishes; pmix::kRankWildcard for what PMIx knows of the job.
  PmixQuestion(const PmixLibrary& library, const pmix::Proc& self, std::uint32_t rank, const std::string& key);

  /// Waits for the answer; nullopt when the deadline has passed. May be called again.
  std::optional<Answer> wait(std::chrono::steady_clock::time_point deadline) const { return answer_.wait(deadline); }

 private:
  PmixPromise<Answer> answer_;
};

}  // namespace runjob
