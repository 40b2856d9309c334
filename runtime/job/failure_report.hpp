#pragma once

#include <string>
#include <utility>

#include "base/mutex.hpp"
#include "rendezvous/protocol.hpp"

namespace runjob::runtime {

/// Reports to the launcher, through the rendezvous, that this rank is failing. The launcher then names the rank that
/// failed first and not the one that ended first. Each kind of failure is reported once; later calls do nothing.
/// Threads  any.
/// Errors   none: a report that cannot be sent is dropped.
class FailureReport {
 public:
  /// `address` is that of the rendezvous.
  FailureReport(std::string address, int rank) : address_(std::move(address)), rank_(rank) {}

  /// Reports that another rank has left, so that operations here end with an error.
  void lost_a_rank(const std::string& reason) { report({.own = false, .reason = reason}); }

  /// Reports that the job ends because an operation has waited too long for rank `late`.
  void late(int late, const std::string& reason) { report({.own = false, .reason = reason, .late = late}); }

  /// Reports that the job ends because ranks wait for each other.
  void mutual(const std::string& reason) { report({.own = true, .reason = reason, .mutual = true}); }

  /// Reports that the network to rank `lost` has failed, or that this rank cannot tell that from its end.
  void lost_connection(int lost, const std::string& reason) { report({.own = false, .reason = reason, .lost = lost}); }

  /// Reports that this rank ends because of its own error.
  void failing(const std::string& reason) { report({.own = true, .reason = reason}); }

 private:
  void report(const rendezvous::Failing& failing);

  const std::string address_;
  const int rank_;
  Mutex mutex_;
  bool reported_[2] GUARDED_BY(mutex_) = {false, false};  // for another rank's failure, for this rank's own
};

}  // namespace runjob::runtime
