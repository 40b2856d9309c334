#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "runtime/mpi_start/foreign_launcher.hpp"

namespace runjob::runtime {

/// The exchange by which the launcher of an MPI lets the ranks of one job find each other.
///
/// Only the job's own processes get at it, by the launcher's means: PMIx checks the user and the credentials of who connects, PMI
/// is a socket that the process has inherited. Values pass through the launcher's daemons in clear text, so that what is secret in
/// them (the tokens with which ranks know each other) is as safe as those daemons' connections; who does not trust the network
/// between the hosts uses runjob, whose connections are encrypted by SSH.
///
/// Threads  one, but for leave().
class KeyStore {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  virtual ~KeyStore() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// `key`: letters, digits, '.' and '-', at most 40; each of a rank's is given once. `value`: any bytes.
  virtual void put(const std::string& key, const std::string& value) = 0;

  /// Returns when all ranks have come: then what each has put can be got.
  /// Errors  Error(kTimeout) without a text: the store can then be asked for absent(), and for nothing else. Error(kConnect), Error(kProtocol).
  void fence(TimePoint deadline);
  /// Whether a fence has not ended, or not in time.
  bool fence_is_open() const { return fence_is_open_; }

  /// What `rank` has put. Errors  Error(kTimeout), Error(kConnect), Error(kProtocol).
  virtual std::string get(int rank, const std::string& key, TimePoint deadline) = 0;

  /// After a fence that has timed out: the ranks that have not put it, found out in `patience` at most; nullopt where that cannot be known.
  virtual std::optional<std::vector<int>> absent(const std::string& key, std::chrono::milliseconds patience) = 0;

  /// `tell` is called when the launcher has gone and nobody ends this process: once, on a thread of the store's, or here when it has
  /// gone already; or never where a launcher takes its ranks with it. A later call replaces it.
  virtual void on_loss(std::function<void(const Status&)> tell) = 0;

  /// The process ends in good order: a launcher takes one that leaves its store otherwise for a failure, and ends the job. Takes a second at
  /// most. Not called while a fence is open.
  virtual void leave() noexcept = 0;

 private:
  virtual void wait_for_all(TimePoint deadline) = 0;

  std::atomic<bool> fence_is_open_{false};
};

/// The launcher's, opened at the first call. It stays open to the end of the process, where it is left: neither PMI nor PMIx 5 can be
/// opened again after that. A child, forked, cannot use its parent's.
/// Threads  one. Errors  Error(kUnavailable) saying what to install or to do, Error(kConnect), Error(kProtocol).
KeyStore& process_key_store(const ForeignLauncher& launcher);

}  // namespace runjob::runtime
