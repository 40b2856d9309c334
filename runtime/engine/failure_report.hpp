#pragma once

#include <string>
#include <utility>

#include "base/mutex.hpp"

namespace runjob::runtime {

/// Tells the launcher, through the rendezvous, that this rank is failing, so that it names the rank that failed first and
/// not the one that happened to end first. Each is told once; later calls do nothing. Threads  any. Errors   none: who
/// cannot be told is not told.
class FailureReport {
 public:
  /// `address`: the rendezvous.
  FailureReport(std::string address, int rank) : address_(std::move(address)), rank_(rank) {}

  /// Another rank has left, so that operations here end with an error.
  void lost_a_rank(const std::string& reason) { tell(false, reason); }

  /// This rank ends because of an error of its own.
  void failing(const std::string& reason) { tell(true, reason); }

 private:
  void tell(bool own, const std::string& reason);

  const std::string address_;
  const int rank_;
  Mutex mutex_;
  bool told_[2] GUARDED_BY(mutex_) = {false, false};  // of another rank's, of our own
};

}  // namespace runjob::runtime
