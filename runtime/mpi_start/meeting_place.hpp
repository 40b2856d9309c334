#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.hpp"
#include "rendezvous/protocol.hpp"

namespace runjob::runtime {

/// Where the ranks of a job find each other: our launcher's rendezvous, or another launcher's key store. Threads  one.
class MeetingPlace {
 public:
  using Milliseconds = std::chrono::milliseconds;

  virtual ~MeetingPlace() = default;

  /// Differs between the jobs that this process may be in.
  virtual std::string name() const = 0;

  /// This process's place. `timeout`: the user's; nullopt for the default.
  /// Errors  Error: kConnect, kTimeout naming who is missing.
  virtual rendezvous::JoinReply join(std::optional<Milliseconds> timeout) = 0;

  /// Gives `blob` and returns those of all ranks, by rank. `name`: another one each time. Errors  as join().
  virtual std::vector<std::string> gather(const std::string& name, const std::string& blob, Milliseconds timeout) = 0;

  /// `tell` is called, on another thread or in here, when the launcher has gone and nobody ends this process any more: once, or never.
  virtual void on_loss(std::function<void(const Status&)> tell) = 0;
};

}  // namespace runjob::runtime
