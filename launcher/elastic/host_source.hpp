#pragma once

#include <functional>
#include <memory>

#include "launcher/elastic/host_changes.hpp"

namespace runjob {

/// Something that changes the hosts of an elastic job while it runs: a discovery script, a hostfile, its user.
/// Owner    the supervisor. Outlives the loop's run.
/// Threads  the loop's one thread.
class HostSource {
 public:
  virtual ~HostSource() = default;
  /// The first generation runs.
  virtual void start() = 0;
  /// The job ends: no change comes any more, and no process or file of the source is left.
  virtual void stop() = 0;
};

/// `changes` outlives the source.
using MakeHostSource = std::function<std::unique_ptr<HostSource>(HostChanges& changes)>;

}  // namespace runjob
