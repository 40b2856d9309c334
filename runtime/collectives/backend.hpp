#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
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
  /// The operation's work on a device, made by begin_work(); null for host memory, and on a rank that has joined.
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

/// A buffer of an operation on a device.
struct DeviceBuffer {
  const void* memory = nullptr;
  std::size_t tensor = 0;  ///< the index of its tensor in a group
};

/// An operation on tensors of a device as begin_work() gets it. All of it is lent.
struct DeviceSubmission {
  Device device;
  std::string_view name;
  Kind kind = Kind::kAllreduce;
  int process_set = 0;
  std::span<const DeviceBuffer> buffers;  ///< the inputs and outputs that have elements
  std::size_t tensors = 1;                ///< their number
};

/// A backend's advice when it is worth while to run several allreduces as one, although their tensors must be copied
/// into a buffer and out of it.
struct FusionAdvice {
  std::size_t fuses_below = 0;          ///< tensors of this many bytes or more are not fused
  std::size_t buffer_bytes = 1u << 20;  ///< size of the buffer; a larger one is no faster
};

/// The advice between hosts, where each operation costs a few more round trips.
inline constexpr FusionAdvice kNetworkFusion{.fuses_below = 1u << 20, .buffer_bytes = 16u << 20};

/// Runs collectives among a fixed set of ranks, in the order of run(), which is the same on every rank.
/// Life     constructed; address() given to all ranks; connect() with all addresses; run()...; destroyed.
/// Threads  one caller at a time, except that any thread may call abort().
/// Errors   values only, because a backend may live in a module of its own: no exception leaves it.
class DataBackend {
 public:
  virtual ~DataBackend() = default;

  /// The bytes that the other ranks need to reach this one.
  virtual std::string address() const = 0;
  /// Blocks until all ranks are connected, at most for the options' timeout. `addresses` has address() of every rank,
  /// by rank.
  virtual Status connect(const std::vector<std::string>& addresses) = 0;

  /// The backend can run this call. Depends only on what the ranks have agreed on, so that all ranks come to the same
  /// answer; a backend of the host runs everything in host memory.
  virtual bool supports(const Call& call) const { return call.memory.kind == MemoryKind::kHost; }
  /// The reason why supports() is false, for people; empty for the usual one.
  virtual std::string objection(const Call&) const { return {}; }
  /// Begins an operation on tensors of a device, on the thread that submits it: later work of the caller's stream is
  /// not part of its input. `work` stays null for a backend whose calls block until the device is done.
  /// Errors  kInvalidArgument for a buffer that is not the device's.
  virtual Status begin_work(const DeviceSubmission&, std::shared_ptr<DeviceWork>&) { return {}; }
  /// The reason why no rank runs this call on a device, although all have agreed on it; OK when they run it. `call` has
  /// no buffers. Asked once for each tensor of an operation, before the first of its calls, in the same order on all
  /// ranks. The answer is the same on all of them, and may need an exchange among them.
  virtual Status refusal(const Call&) { return {}; }
  /// Blocks until the buffers are no longer used; with `call.work`, until the call is queued on the device. After a
  /// failure every later call fails too.
  virtual Status run(const Call& call) = 0;
  /// run() of several allreduces of a device that have all but their tensors in common, as one where the device can.
  virtual Status run_together(std::span<const Call> calls) {
    for (const Call& call : calls) {
      if (Status status = run(call); !status.ok()) return status;
    }
    return {};
  }
  /// run() of a call like this one waits neither for a device nor for another rank, so that the thread that submits an
  /// operation may launch it too. Any thread.
  virtual bool only_queues(const Call&) const { return false; }
  /// The backend's advice on fusion, the same on all ranks.
  virtual FusionAdvice fusion_advice() const { return {}; }
  /// Memory of this kind in which this backend's calls are the fastest, or the only memory of this kind that it can
  /// give; null when ordinary memory does. Valid once connected. Any thread.
  virtual std::shared_ptr<BufferAllocator> buffers(MemoryKind) const { return nullptr; }

  /// `report` is called on any thread when a device fails outside of a call. To be set once, before connect().
  virtual void on_failure(std::function<void(const Status&)>) {}

  /// The outcome of everything that devices do for this backend: nullopt while one of them is at work. When a job ends,
  /// what was done before stays done. Does not wait.
  virtual std::optional<Status> device_outcome() const { return Status(); }
  /// The first operation that a device of this rank has not finished, and how far it has come, for people; after a
  /// failure, as it was then. Empty for none. Any thread.
  virtual std::string unfinished() const { return {}; }

  /// By its number in messages, the rank to which the network has failed; -1 for none. A rank that has closed its
  /// connection is none. Any thread.
  virtual int lost_rank() const { return -1; }
  /// Ends the running call and all later ones with `why`, soon and without waiting for it; also ends a connect(). The
  /// other ranks' calls end too.
  virtual void abort(const Status& why) = 0;
};

/// A backend that also carries the negotiation of an engine: a DataBackend and rounds of messages among the same ranks.
class Backend : public DataBackend {
 public:
  /// Valid once connected, as long as the backend.
  virtual Rounds& rounds() = 0;
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

/// The terms on which the devices of a job are used.
struct DeviceTerms {
  /// The ranks may belong to other meshes too, whose operations on the same devices must have one order on all ranks.
  bool shares_ranks = false;
  /// How long a device may be at work on one operation before that is reported, and before the job ends; 0: for ever.
  std::chrono::milliseconds stall_warning{60000}, stall_failure{0};
};

/// The parts from which a backend of devices is made, when the first tensor of a device is submitted.
struct DeviceOptions {
  MeshOptions mesh;
  DeviceTerms terms;
  DataBackend* host = nullptr;  ///< lent: carries the exchanges among the ranks in which they agree on a communicator
  std::function<void(const Status&)> on_failure;
  /// Writes a line for people to the log: a warning, or else information. A module has no log of its own.
  std::function<void(bool is_warning, const std::string& line)> log;
};

/// The table that the module of the GPUs exports under kDevicePluginSymbol. As BackendPlugin, `build` must match.
struct DevicePlugin {
  const char* build;
  Status (*create)(const DeviceOptions& options, std::unique_ptr<DataBackend>& backend);
  /// A JSON document on the libraries behind the module: {"nccl": {"available", "version", "version_code", "path",
  /// "reason"}, "cuda": {..., "gpus": [...]}}. Makes no context. Lent until the next call.
  const char* (*description)();
  /// The reason why this process can take part in no further job, because a GPU is still at work for one that has
  /// failed; empty for none. Waits for a few seconds while that may still end. Lent until the next call.
  const char* (*leftover)();
};
inline constexpr char kDevicePluginSymbol[] = "runjob_device_plugin";

}  // namespace runjob::runtime
