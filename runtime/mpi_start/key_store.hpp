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
/// Security  Only the job's own processes can use it, by the launcher's means: PMIx checks the user and the credentials
///           of a client, and PMI is a socket that the process has inherited. Values pass through the launcher's
///           daemons in clear text. Secrets in them (the tokens with which ranks recognise each other) are as safe as
///           those daemons' connections. Where the network between the hosts is not trusted, use runjob, whose
///           connections SSH encrypts.
/// Threads  one, except for leave().
class KeyStore {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  virtual ~KeyStore() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// Stores a value. `key` has letters, digits, '.' and '-', at most 40; a rank stores each key once. `value` has any
  /// bytes.
  virtual void put(const std::string& key, const std::string& value) = 0;

  /// Returns when all ranks have called it. Then the values of all ranks can be read.
  /// Errors  Error(kTimeout) without a text: then only absent() may be called. Error(kConnect), Error(kProtocol).
  void fence(TimePoint deadline);
  /// True while a fence has not ended, and after one that did not end in time.
  bool fence_is_open() const { return fence_is_open_; }

  /// The value that `rank` has stored.
  /// Errors  Error(kTimeout), Error(kConnect), Error(kProtocol).
  virtual std::string get(int rank, const std::string& key, TimePoint deadline) = 0;

  /// After a fence that has timed out: the ranks that have not stored `key`, determined within `patience`; nullopt
  /// where the store cannot know.
  virtual std::optional<std::vector<int>> absent(const std::string& key, std::chrono::milliseconds patience) = 0;

  /// Registers `notify`, which is called when the launcher is lost and no other process ends this one. It is called
  /// once, on a thread of the store, or at once when the launcher is lost already. It is never called where a
  /// launcher's loss ends its ranks. A later registration replaces it.
  virtual void on_loss(std::function<void(const Status&)> notify) = 0;

  /// Reports to the launcher that the process ends regularly. Otherwise the launcher takes the end for a failure and
  /// ends the job. Takes a second at most. Must not be called while a fence is open.
  virtual void leave() noexcept = 0;

 private:
  virtual void wait_for_all(TimePoint deadline) = 0;

  std::atomic<bool> fence_is_open_{false};
};

/// The launcher's store, which the first call opens. It stays open to the end of the process, because neither PMI nor
/// PMIx 5 can be opened again. A forked child cannot use its parent's.
/// Threads  one.
/// Errors   Error(kUnavailable) with the remedy, Error(kConnect), Error(kProtocol).
KeyStore& process_key_store(const ForeignLauncher& launcher);

}  // namespace runjob::runtime
