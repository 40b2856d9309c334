#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/secrets/secret.hpp"
#include "rendezvous/job_key.hpp"
#include "runtime/collectives/backend.hpp"
#include "runtime/control/wait_limits.hpp"
#include "runtime/engine/engine.hpp"
#include "runtime/job/bootstrap_blob.hpp"
#include "runtime/job/runtime_config.hpp"
#include "runtime/life/control_plane.hpp"
#include "runtime/links/listener.hpp"
#include "runtime/messages/rank_messages.hpp"
#include "runtime/negotiation/members.hpp"

/// Connects the ranks of an engine: those of a job at init(), and those of a process set when it is added. Each rank
/// prepares, all meet, then they connect.
namespace runjob::runtime {

/// The folder of the job's Unix sockets on this host: that of the rendezvous' socket; empty when the rendezvous is no
/// Unix socket.
std::string socket_directory(const RuntimeConfig& config);

/// The ranks that are to be connected.
struct MeshPlan {
  /// index of this process among the members; -1 for a process that is no member and only watches them meet
  int rank = 0;
  Members members;
  std::vector<int> hosts;  ///< by member: ranks on one host have equal numbers
  std::chrono::milliseconds timeout{0};
  std::optional<rendezvous::JobKey> job_key;     ///< none when the ranks' addresses travel in secret
  std::shared_ptr<BufferAllocator> job_buffers;  ///< for a process set: the heap of its job; null when that has none

  int size() const { return static_cast<int>(members.size()); }
  /// Zeros when there is none.
  Secret key_bytes() const { return job_key ? Secret(job_key->bytes()) : Secret(); }
  bool has_one_host() const;
};

/// The objects that a rank has created before it meets the others.
struct Prepared {
  std::unique_ptr<Backend> backend;
  std::optional<Listener> listener;  ///< set by the first rank, unless it is alone
  std::optional<Listener> messages;  ///< for a job of several ranks: where other ranks connect for messages
  bool encrypts = false;             ///< the control plane
  BootstrapBlob blob;
};

/// Prepares this rank. A rank that cannot take part has the reason in its blob: it still meets the others, so that they
/// do not wait.
Prepared prepare_mesh(const RuntimeConfig& config, const MeshPlan& plan);

/// Exchanges the members' blobs and returns them by member, once all have arrived. `stage` names the exchange; all
/// members make the same ones.
using Gather = std::function<std::vector<BootstrapBlob>(const std::string& stage, const BootstrapBlob& own)>;

/// The information about the members after they have met.
struct Meeting {
  BootstrapBlob root;                  ///< the first rank's blob
  std::vector<std::string> addresses;  ///< the backends' addresses, by member
  std::vector<std::string> messages;   ///< for a job: the addresses for messages, by member; empty for one rank
  std::string backend = {};            ///< backend_text()
};

/// Meets the other members.
/// Errors  Error(kUnavailable) naming a rank that cannot take part; the errors of `gather`.
Meeting meet(const RuntimeConfig& config, const MeshPlan& plan, Prepared& prepared, const Gather& gather);

/// Connects the control plane. Not for a process that only watches. `trace` may be null; `cancel`: see
/// link_setup.hpp.
/// Errors  Error(kConnect), Error(kTimeout) naming the missing members, Error(kAborted).
std::unique_ptr<ControlPlane> connect_control(const Prepared& prepared, const MeshPlan& plan, const BootstrapBlob& root,
                                              std::unique_ptr<TraceReceiver> trace, Deadline deadline, int cancel = -1);

/// The messages between the job's ranks. `on_broken`: see MessageTerms.
/// Errors  Error(kProtocol): a rank has sent a malformed address.
std::shared_ptr<RankMessages> make_messages(const RuntimeConfig& config, const MeshPlan& plan,
                                            std::optional<Listener> own, const Meeting& meeting,
                                            std::function<void(const Status&)> on_broken);

/// The key by which the members recognize each other's objects (ObjectSeals). `root`: the first member's blob.
Secret object_key(const MeshPlan& plan, const BootstrapBlob& root);

/// Makes the members' engine, whose backend is not connected yet. It writes to `timeline`. Otherwise as
/// connect_control().
std::shared_ptr<Engine> make_engine(const RuntimeConfig& config, const MeshPlan& plan, Prepared prepared,
                                    const Meeting& meeting, std::shared_ptr<Timeline> timeline, Deadline deadline,
                                    int cancel = -1);

}  // namespace runjob::runtime
