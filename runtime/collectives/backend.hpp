#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/secrets/secret.hpp"
#include "base/status.hpp"
#include "runtime/collectives/memory.hpp"
#include "runtime/collectives/operation.hpp"
#include "runtime/collectives/rounds.hpp"
#include "runtime/collectives/transport.hpp"

namespace runjob::runtime {

class DeviceWork;

/// One collective that all ranks have agreed on. Never empty: the engine itself completes operations of zero elements.
struct Call {
  Kind kind = Kind::kAllreduce;  ///< never kBarrier, which needs only negotiation
  DType dtype = DType::kUint8;
  ReduceOp op = ReduceOp::kSum;
  int root = 0;
  double prescale = 1, postscale = 1;
  Memory memory = {};  ///< where `input` and `output` lie
  /// The operation's work on a device, made by DeviceBackend::begin_work(); null for host memory, and on a rank that
  /// has joined.
  std::shared_ptr<DeviceWork> work = {};
  const void* input = nullptr;
  void* output = nullptr;  ///< allreduce: may be `input`; broadcast: the one buffer; otherwise room for the result
  std::size_t count = 0;   ///< number of elements of `input`
  /// Counts of elements, which may be 0. allgather: of each rank; reducescatter: of each rank's result; alltoall: from
  /// each rank.
  std::vector<std::size_t> counts = {};
  std::vector<std::size_t> send_counts = {};  ///< alltoall: number of elements to each rank
  /// alltoall: the largest part that any rank sends to any other; the same on all ranks
  std::size_t largest_part = 0;
  bool has_equal_parts = false;  ///< alltoall: every part has largest_part elements; the same on all ranks
  /// Called with the timeline's name of each stage as it starts, and the name of its algorithm, on the thread that runs
  /// it. Empty when there is no timeline. Both names are static; `algorithm` may be null.
  std::function<void(const char* stage, const char* algorithm)> on_stage = {};

  void tell_stage(const char* stage, const char* algorithm) const {
    if (on_stage) on_stage(stage, algorithm);
  }
};

/// A backend's advice when it is worth while to run several allreduces as one, although their tensors must be copied
/// into a buffer and out of it.
struct FusionAdvice {
  std::size_t fuses_below = 0;          ///< tensors of this many bytes or more are not fused
  std::size_t buffer_bytes = 1u << 20;  ///< size of the buffer; a larger one is no faster
};

/// The advice between hosts, where each operation costs a few more round trips.
inline constexpr FusionAdvice kNetworkFusion{.fuses_below = 1u << 20, .buffer_bytes = 16u << 20};

/// Runs collectives on memory of the host among a fixed set of ranks, in the order of run(), which is the same on every
/// rank.
/// Life     constructed; address() given to all ranks; connect() with all addresses; run()...; destroyed.
/// Threads  one caller at a time, except that any thread may call abort() and lost_rank().
/// Errors   values only, because a backend may live in a module of its own: no exception leaves it.
class DataBackend {
 public:
  virtual ~DataBackend() = default;

  /// The bytes that the other ranks need to reach this one.
  virtual std::string address() const = 0;
  /// Blocks until all ranks are connected, at most for the options' timeout. `addresses` has address() of every rank,
  /// by rank.
  virtual Status connect(const std::vector<std::string>& addresses) = 0;
  /// Blocks until the buffers are no longer used. After a failure every later call fails too.
  virtual Status run(const Call& call) = 0;
  /// By its number in messages, the rank to which the network has failed; -1 for none. A rank that has closed its
  /// connection is none.
  virtual int lost_rank() const { return -1; }
  /// Ends the running call and all later ones with `why`, soon and without waiting for it; also ends a connect(). The
  /// other ranks' calls end too.
  virtual void abort(const Status& why) = 0;
};

/// The backend of an engine: it also carries the negotiation, in rounds of messages among the same ranks.
/// Threads  as DataBackend; buffers() any.
class Backend : public DataBackend {
 public:
  /// Valid once connected, as long as the backend.
  virtual Rounds& rounds() = 0;
  /// The backend's advice on fusion, the same on all ranks.
  virtual FusionAdvice fusion_advice() const { return {}; }
  /// Memory of the host in which this backend's calls are the fastest; null when ordinary memory does. Valid once
  /// connected.
  virtual std::shared_ptr<BufferAllocator> buffers() const { return nullptr; }
};

/// What every backend is made from. What only one backend needs is in its own options.
struct MeshOptions {
  int rank = 0, size = 1;
  std::string bind_address;                            ///< numeric address of this host that the other ranks can reach
  std::chrono::milliseconds connect_timeout{30000};    ///< limit of connect()
  std::chrono::milliseconds operation_timeout{30000};  ///< how long a collective waits for another rank's data
  std::vector<int> names = {};                         ///< by rank: its number in messages; empty: the rank itself
  std::vector<int> hosts = {};   ///< by rank: ranks on one host have equal numbers; empty: all on one
  std::vector<int> groups = {};  ///< by rank: ranks that share memory have equal numbers; empty: those of each host
  /// The job's key, where the ranks' addresses travel in the clear; zero bytes where they travel in secret.
  Secret job_key = {};
  bool encrypts = false;  ///< between hosts; the same on all ranks

  bool has_several_hosts() const {
    return std::any_of(hosts.begin(), hosts.end(), [&](int host) { return host != hosts.front(); });
  }
  int name(int of) const { return names.empty() ? of : names[static_cast<std::size_t>(of)]; }
};

/// The options of a transport over which every rank of a mesh exchanges long messages with every other one.
inline TransportOptions all_pairs(const MeshOptions& mesh) {
  TransportOptions options;
  options.member = mesh.rank;
  for (int rank = 0; rank < mesh.size; ++rank) {
    options.ranks.push_back(mesh.name(rank));
    if (rank != mesh.rank) options.long_peers.push_back(rank);
  }
  options.bind_address = mesh.bind_address;
  options.job_key = mesh.job_key;
  options.encrypts = mesh.encrypts;
  options.connect_timeout = mesh.connect_timeout;
  options.operation_timeout = mesh.operation_timeout;
  return options;
}

/// The table that a backend's module exports under kPluginSymbol. Module and library come from one build: `build` must
/// match.
struct BackendPlugin {
  const char* build;
  /// `transport`: not connected yet; it reaches every rank with long messages.
  Status (*create)(const MeshOptions& options, std::unique_ptr<Transport> transport,
                   std::unique_ptr<DataBackend>& backend);
  const char* (*library_version)();
  const char* (*library_path)();  ///< path of the shared library behind the module; lent for ever
};
inline constexpr char kPluginSymbol[] = "runjob_backend_plugin";

}  // namespace runjob::runtime
