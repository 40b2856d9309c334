#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "base/pmix/pmix_library.hpp"
#include "base/pmix/pmix_promise.hpp"

/// The values that the processes of a PMIx job publish for each other. The process must have called PMIx_Init.
namespace runjob {

/// Publishes a copy of `bytes` for all processes of the job, from the next commit on.
/// Errors  the status that PMIx returns; nothing is thrown.
pmix::Status put_pmix_value(const PmixLibrary& library, const std::string& key, const std::string& bytes);

/// A request for a value that a process of the job publishes. When the value is not published yet, some servers answer
/// as soon as it is, and others refuse at once.
/// Owner    the caller. The question may be destroyed before the answer arrives, which is then dropped.
/// Threads  one at a time. A thread of libpmix receives the answer.
/// Errors   Answer::status, also when PMIx did not accept the request; nothing is thrown.
class PmixQuestion {
 public:
  struct Answer {
    pmix::Status status = pmix::kSuccess;
    std::string bytes;         ///< the value, if it is a byte object
    std::uint32_t number = 0;  ///< the value, if it is a uint32
  };

  /// Makes the request, and returns at once. `self`: this process, as PMIx_Init has set it. `rank`: the process that
  /// publishes the value; pmix::kRankWildcard for PMIx's own values of the job.
  PmixQuestion(const PmixLibrary& library, const pmix::Proc& self, std::uint32_t rank, const std::string& key);

  /// Blocks until the answer is there; nullopt when the deadline has passed. May be called again.
  std::optional<Answer> wait(std::chrono::steady_clock::time_point deadline) const { return answer_.wait(deadline); }

 private:
  PmixPromise<Answer> answer_;
};

}  // namespace runjob
