#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "rendezvous/protocol.hpp"

namespace runjob::rendezvous {

/// The service through which the ranks of a job find each other: the rendezvous of runjob's launcher, or another
/// launcher's key store.
/// Threads  one.
class MeetingPlace {
 public:
  using Milliseconds = std::chrono::milliseconds;

  virtual ~MeetingPlace() = default;

  /// A name that differs between the jobs that this process may be in.
  virtual std::string name() const = 0;

  /// Joins and returns this process's ranks. `timeout` is the user's; nullopt means the default.
  /// Errors  Error: kConnect, kTimeout naming the missing ranks.
  virtual JoinReply join(std::optional<Milliseconds> timeout) = 0;

  /// Gives `blob` and returns those of all ranks, by rank. `name` must differ between calls.
  /// Errors  as join().
  virtual std::vector<std::string> gather(const std::string& name, const std::string& blob, Milliseconds timeout) = 0;

  /// Registers `notify`, which is called at most once, on another thread or in this call, when the launcher is lost and
  /// no other process ends this one.
  virtual void on_loss(std::function<void(const Status&)> notify) = 0;
};

}  // namespace runjob::rendezvous
