#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/collectives/backend.hpp"
#include "runtime/control/control_connect.hpp"
#include "runtime/engine/bootstrap_blob.hpp"
#include "runtime/engine/control_plane.hpp"
#include "runtime/engine/engine.hpp"
#include "runtime/engine/members.hpp"
#include "runtime/engine/runtime_config.hpp"

/// Connecting the ranks of an engine, those of a job at init() and those of a process set when it is added: each rank prepares, all
/// meet, then they connect.
namespace runjob::runtime {

/// Who is to be connected.
struct MeshPlan {
  int rank =
      0;  ///< of this process among the members; -1 for a process that is none of them and only watches them meet
  Members members;
  std::vector<int> hosts;  ///< by member: equal numbers for ranks on one host
  std::chrono::milliseconds timeout{0};
  std::shared_ptr<SymmetricHeap> symmetric_heap;  ///< of a process set's job; null when that has none

  int size() const { return static_cast<int>(members.size()); }
  bool has_one_host() const;
};

/// What a rank has made for itself before it meets the others.
struct Prepared {
  std::unique_ptr<Backend> backend;
  std::optional<ControlListener> listener;  ///< the first rank's, unless it is alone
  BootstrapBlob blob;
};

/// A rank that cannot take part has the reason in its blob: it still meets the others, so that they do not wait.
Prepared prepare_mesh(const RuntimeConfig& config, const MeshPlan& plan);

/// What all members have to say, by member, once all have come. `stage`: a word for this exchange; all do the same ones.
using Gather = std::function<std::vector<BootstrapBlob>(const std::string& stage, const BootstrapBlob& own)>;

/// What a rank knows of the members when they have met.
struct Meeting {
  BootstrapBlob root;                  ///< the first rank's
  std::vector<std::string> addresses;  ///< of the backend, by member
};

/// Errors  Error(kUnavailable) naming a rank that cannot take part; what `gather` throws.
Meeting meet(const RuntimeConfig& config, const MeshPlan& plan, Prepared& prepared, const Gather& gather);

/// Not for a process that only watches. `observer` may be null; `cancel`: see control_connect.hpp.
/// Errors  Error(kConnect), Error(kTimeout) naming who is missing, Error(kAborted).
std::unique_ptr<ControlPlane> connect_control(const Prepared& prepared, const MeshPlan& plan, const BootstrapBlob& root,
                                              std::unique_ptr<NegotiationObserver> observer, Deadline deadline,
                                              int cancel = -1);

/// The members' engine, whose backend is yet to be connected; it writes to `timeline`. Else as connect_control().
std::shared_ptr<Engine> make_engine(const RuntimeConfig& config, const MeshPlan& plan, Prepared prepared,
                                    const Meeting& meeting, std::shared_ptr<Timeline> timeline, Deadline deadline,
                                    int cancel = -1);

}  // namespace runjob::runtime
