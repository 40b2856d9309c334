#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "runtime/collectives/operation.hpp"
#include "runtime/collectives/rounds.hpp"
#include "runtime/collectives/transport.hpp"

namespace runjob::runtime {

class SymmetricHeap;

/// One collective that all ranks have agreed on. Never empty: the engine answers zero elements itself.
struct Call {
  Kind kind = Kind::kAllreduce;  ///< never kBarrier: negotiation alone is one
  DType dtype = DType::kUint8;
  ReduceOp op = ReduceOp::kSum;
  int root = 0;
  double prescale = 1, postscale = 1;
  const void* input = nullptr;
  void* output = nullptr;  ///< allreduce: may be `input`; broadcast: the one buffer; else room for the result
  std::size_t count = 0;   ///< elements of `input`
  /// Elements, some may be 0. allgather: of each rank; reducescatter: of each rank's result; alltoall: from each rank.
  std::vector<std::size_t> counts = {};
  std::vector<std::size_t> send_counts = {};  ///< alltoall: elements to each rank
  std::size_t largest_part = 0;               ///< alltoall: the most that any rank sends to any; the same on all
  /// Told the timeline's name of each stage as it begins, and how it is done, on the thread that runs it; empty when nobody
  /// listens. Both static; `algorithm` may be null.
  std::function<void(const char* stage, const char* algorithm)> on_stage = {};

  void tell_stage(const char* stage, const char* algorithm) const {
    if (on_stage) on_stage(stage, algorithm);
  }
};

/// When it pays to run several allreduces as one, for which their tensors are copied into a buffer and out of it.
struct FusionAdvice {
  std::size_t fuses_below = 0;          ///< bytes of a tensor, from which on it is better alone
  std::size_t buffer_bytes = 1u << 20;  ///< of the buffer: more at once is no faster
};

/// Between hosts, where each operation costs a few round trips more.
inline constexpr FusionAdvice kNetworkFusion{.fuses_below = 1u << 20, .buffer_bytes = 16u << 20};

/// Runs collectives among a fixed set of ranks, in the order of run(), which is the same on every rank.
/// Life     made; address() given to all ranks; connect() with all addresses; run()...; destroyed.
/// Threads  one caller at a time, but abort() from any thread.
/// Errors   values only, since a backend may live in a module of its own: no exception leaves it.
class Backend {
 public:
  virtual ~Backend() = default;

  /// What the other ranks need to reach this one: bytes.
  virtual std::string address() const = 0;
  /// Blocks until all are connected, at most the options' timeout. `addresses`: address() of every rank, by
  /// rank.
  virtual Status connect(const std::vector<std::string>& addresses) = 0;

  /// Blocks until the buffers are no longer touched. After a failure every later call fails too.
  virtual Status run(const Call& call) = 0;
  /// The same on all ranks.
  virtual FusionAdvice fusion_advice() const { return {}; }
  /// Memory for buffers that the ranks reach directly; null when there is none. Once connected; any thread.
  virtual std::shared_ptr<SymmetricHeap> symmetric_heap() const { return nullptr; }

  /// Ends what runs and all that follows with `why`, soon and without waiting for it; also ends a connect(). The other ranks'
  /// calls end too.
  virtual void abort(const Status& why) = 0;

  /// A way to negotiate among the same ranks; null when there is none better than the star of control channels. Valid once
  /// connected, as long as the backend.
  virtual Rounds* rounds() { return nullptr; }
};

/// What a backend is made from.
struct MeshOptions {
  int rank = 0, size = 1;
  std::string bind_address;                            ///< numeric address of this host that the other ranks can reach
  std::chrono::milliseconds connect_timeout{30000};    ///< for connect()
  std::chrono::milliseconds operation_timeout{30000};  ///< how long a collective waits for another rank's data
  std::vector<int> names = {};                         ///< by rank: how messages call it; empty: by this number
  std::vector<int> hosts = {};  ///< by rank: equal numbers for ranks on one host; empty: all on one
  /// Whether these go through the hosts' leaders or columns; else a rank is as good as another, wherever it is.
  bool hierarchical_allreduce = true, hierarchical_allgather = true;
  bool cma = true;               ///< shared memory: ranks may read each other's through the kernel
  bool symmetric_memory = true;  ///< whether users may have memory that the ranks reach directly
  /// That of the job whose ranks `names` has, when it has some; null: these are all of its ranks, which make it.
  std::shared_ptr<SymmetricHeap> symmetric_heap = nullptr;
  std::string cache_directory = {};  ///< where jobs leave what they have measured; empty: nowhere

  int name(int of) const { return names.empty() ? of : names[static_cast<std::size_t>(of)]; }
};

/// What a backend's module exports under kPluginSymbol. Module and library come from one build: `build` must
/// match.
struct BackendPlugin {
  const char* build;
  Status (*create)(const MeshOptions& options, std::unique_ptr<Backend>& backend);
  Status (*create_transport)(const TransportOptions& options, std::unique_ptr<Transport>& transport);
  const char* (*library_version)();
  const char* (*library_path)();  ///< of the shared library behind the module; lent for ever
};
inline constexpr char kPluginSymbol[] = "runjob_backend_plugin";

}  // namespace runjob::runtime
