#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <thread>

#include "runtime/collectives/nccl/nccl_abi.hpp"
#include "tests/gpu_stand_in/nccl_exchange.hpp"
#include "tests/gpu_stand_in/nccl_reduction.hpp"
#include "tests/gpu_stand_in/settings.hpp"
#include "tests/gpu_stand_in/stand_in.hpp"
#include "tests/gpu_stand_in/vendor_names.hpp"

/// libnccl.so.2 for machines without a GPU: see stand_in.hpp. It runs on libcuda's stand-in. Every rank sends its whole
/// input to all that need it, and reduces by itself.
namespace {

using namespace runjob::runtime::nccl;
using stand_in::Exchange;

constexpr Result kUnhandledCudaError = 1, kInvalidArgument = 4, kRemoteError = 6;

const runjob_stand_in_gpu& gpu() {
  static const auto* const found = [] {
    void* const library = ::dlopen(stand_in::kDriverFile, RTLD_NOW | RTLD_LOCAL);
    void* const function = library == nullptr ? nullptr : ::dlsym(library, "runjob_stand_in");
    if (function == nullptr) {
      std::fprintf(stderr, "the stand-in of NCCL needs that of libcuda.so.1\n");
      std::_Exit(1);
    }
    return reinterpret_cast<const runjob_stand_in_gpu* (*)()>(function)();
  }();
  return *found;
}

struct Communicator {
  std::unique_ptr<Exchange> exchange;
  int gpu = -1;
  std::atomic<int> kernels{0};  ///< queued and not ended
  std::atomic<bool> is_stopped{false}, has_failed{false};
  std::vector<stand_in::Operator> operators;
  std::mutex mutex;

  int rank() const { return exchange->rank(); }
  int size() const { return exchange->size(); }
};

Communicator* of(Comm comm) {
  return reinterpret_cast<Communicator*>(comm);
}

int version() {
  return stand_in::number("RUNJOB_STAND_IN_NCCL", 22809);
}

struct Kernel {
  Communicator* comm;
  std::function<bool()> run;  ///< false when it was stopped
};

void run_kernel(void* context) {
  const std::unique_ptr<Kernel> kernel(static_cast<Kernel*>(context));
  Communicator& comm = *kernel->comm;
  gpu().begin_kernel(comm.gpu);
  // Kernels are counted in the order in which they begin: "the third kernel" is the third launch.
  if (gpu().fails("kernel") != 0) comm.has_failed = true;
  const bool hangs = gpu().hangs("kernel") != 0;
  if (comm.has_failed || hangs) {  // as NCCL's, it ends when it is aborted
    while (!comm.is_stopped) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  } else if (!comm.is_stopped) {
    kernel->run();
  }
  gpu().end_kernel(comm.gpu);
  --comm.kernels;
}

void launch(Communicator* comm, void* stream, std::function<bool()> run) {
  ++comm->kernels;
  gpu().enqueue(stream, run_kernel, new Kernel{comm, std::move(run)});
}

/// What a thread has called between ncclGroupStart() and ncclGroupEnd().
struct Group {
  int depth = 0;
  struct Message {
    Communicator* comm;
    void* stream;
    bool is_send;
    Exchange::Part part;
  };
  std::vector<Message> messages;
  struct Collective {
    Communicator* comm;
    void* stream;
    std::function<bool()> run;
  };
  std::vector<Collective> collectives;
  std::vector<Communicator*> aborted;

  Communicator* comm() const {
    if (!messages.empty()) return messages.front().comm;
    return collectives.empty() ? nullptr : collectives.front().comm;
  }
};
thread_local Group group;

Result queue(Communicator* comm, void* stream, std::function<bool()> run) {
  if (group.depth > 0) {
    group.collectives.push_back({comm, stream, std::move(run)});
  } else {
    launch(comm, stream, std::move(run));
  }
  return kSuccess;
}

Result message(void* memory, std::size_t bytes, int peer, Comm comm, void* stream, bool is_send) {
  char* const view = static_cast<char*>(gpu().view(memory, bytes));
  if (view == nullptr || group.depth == 0) return kInvalidArgument;
  group.messages.push_back({of(comm), stream, is_send, {peer, view, bytes}});
  return kSuccess;
}

void wait_for_kernels(const Communicator* comm) {
  while (comm->kernels != 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

void end_aborts() {
  std::vector<Communicator*> aborted;
  aborted.swap(group.aborted);
  for (const Communicator* comm : aborted) wait_for_kernels(comm);
}

void end_collectives() {
  std::vector<Group::Collective> collectives;
  collectives.swap(group.collectives);
  if (collectives.empty()) return;
  Communicator* const comm = collectives.front().comm;
  void* const stream = collectives.front().stream;
  launch(comm, stream, [collectives] {
    return std::all_of(collectives.begin(), collectives.end(), [](const auto& each) { return each.run(); });
  });
}

void end_messages() {
  std::vector<Group::Message> messages;
  messages.swap(group.messages);
  if (messages.empty()) return;
  std::vector<Exchange::Part> sends, receives;
  for (const auto& each : messages) (each.is_send ? sends : receives).push_back(each.part);
  Communicator* const comm = messages.front().comm;
  launch(comm, messages.front().stream, [comm, sends, receives] { return comm->exchange->move(sends, receives); });
}

/// The inputs of all ranks, by rank; empty when it was stopped.
std::vector<std::vector<char>> gather(Communicator* comm, char* input, std::size_t bytes) {
  std::vector<std::vector<char>> inputs(static_cast<std::size_t>(comm->size()), std::vector<char>(bytes));
  std::vector<Exchange::Part> sends, receives;
  for (int peer = 0; peer < comm->size(); ++peer) {
    sends.push_back({peer, input, bytes});
    receives.push_back({peer, inputs[static_cast<std::size_t>(peer)].data(), bytes});
  }
  if (!comm->exchange->move(sends, receives)) inputs.clear();
  return inputs;
}

stand_in::Operator operator_of(Communicator* comm, RedOp op) {
  const std::lock_guard lock(comm->mutex);
  if (op <= kAvg) return {op, 1};
  return comm->operators.at(static_cast<std::size_t>(op - kAvg - 1));
}

/// How many of `count` elements the kernel for a scaled sum of one rank writes, which before NCCL 2.29.7 leaves out the
/// last ones when its blocks cannot have equally many: see github.com/NVIDIA/nccl/issues/1950.
std::size_t scaled_in_one_rank(std::size_t count, std::size_t element) {
  constexpr int kMended = 22907;
  if (count == 0 || version() >= kMended) return count;
  const std::size_t blocks = std::min<std::size_t>(32, (count * element + (16 << 10) - 1) / (16 << 10));
  const std::size_t unit = 16 / element;
  return std::min(count, blocks * ((count / blocks + unit - 1) / unit * unit));
}

/// Reduces all ranks' inputs; writes `count` elements from `first` on to `out`, if that is not null. The sum of one rank
/// in place is there at once.
bool reduce(Communicator* comm, char* in, char* out, std::size_t inputs, std::size_t first, std::size_t count,
            DataType dtype, const stand_in::Operator& op) {
  if (comm->size() == 1 && in == out && op.factor == 1) return true;
  const std::size_t element = stand_in::bytes_of(dtype);
  if (comm->size() == 1 && (op.factor != 1 || op.op == kAvg)) count = scaled_in_one_rank(count, element);
  const std::vector<std::vector<char>> all = gather(comm, in, inputs * element);
  if (all.empty()) return false;
  if (out == nullptr) return true;
  std::vector<const char*> from;
  for (const auto& each : all) from.push_back(each.data() + first * element);
  stand_in::reduce(dtype, op, from, out, count);
  return true;
}

/// Ends with the communicator, if the call has one.
Result hang(Communicator* comm) {
  while (comm == nullptr || !comm->is_stopped) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return kRemoteError;
}

#define STAND_IN(name, comm)                              \
  if (gpu().fails(name) != 0) return kUnhandledCudaError; \
  if (gpu().hangs(name) != 0) return hang(comm)
#define VIEW(name, memory, bytes)                                   \
  char* const name = static_cast<char*>(gpu().view(memory, bytes)); \
  if (name == nullptr) return kInvalidArgument

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

Result ncclGetVersion(int* version) {
  *version = ::version();
  return kSuccess;
}

Result ncclGetUniqueId(UniqueId* id) {
  STAND_IN("ncclGetUniqueId", nullptr);
  std::random_device random;
  *id = {};
  std::snprintf(id->bytes, sizeof id->bytes, "%08x%08x%08x", random(), random(), random());
  return kSuccess;
}

const char* ncclGetErrorString(Result result) {
  return result == kRemoteError ? "remote error, of the stand-in" : "an error of the stand-in";
}

const char* ncclGetLastError(Comm) {
  return "the stand-in was asked to fail";
}

Result ncclCommInitRank(Comm* comm, int size, UniqueId id, int rank) {
  STAND_IN("ncclCommInitRank", nullptr);
  auto* const made = new Communicator;
  made->gpu = gpu().current();
  if (made->gpu < 0) return kUnhandledCudaError;
  made->exchange = std::make_unique<Exchange>(id.bytes, rank, size);
  __atomic_store_n(comm, reinterpret_cast<Comm>(made), __ATOMIC_RELEASE);
  return made->exchange->meet() ? kSuccess : kRemoteError;
}

/// The communicator itself is kept: a thread in ncclCommInitRank() may still use it.
Result ncclCommAbort(Comm comm) {
  STAND_IN("ncclCommAbort", nullptr);
  of(comm)->is_stopped = true;
  of(comm)->exchange->stop();
  if (group.depth > 0) {
    group.aborted.push_back(of(comm));
  } else {
    wait_for_kernels(of(comm));
  }
  return kSuccess;
}

Result ncclCommRevoke(Comm comm, int) {
  STAND_IN("ncclCommRevoke", nullptr);
  of(comm)->is_stopped = true;
  of(comm)->exchange->stop();
  return kSuccess;
}

Result ncclCommDestroy(Comm comm) {
  STAND_IN("ncclCommDestroy", nullptr);
  wait_for_kernels(of(comm));
  delete of(comm);
  return kSuccess;
}

Result ncclCommGetAsyncError(Comm comm, Result* error) {
  *error = of(comm)->has_failed ? kRemoteError : kSuccess;
  return kSuccess;
}

Result ncclRedOpCreatePreMulSum(RedOp* op, void* factor, DataType dtype, Residence, Comm comm) {
  const std::lock_guard lock(of(comm)->mutex);
  of(comm)->operators.push_back({kSum, stand_in::value_of(dtype, factor)});
  *op = kAvg + static_cast<int>(of(comm)->operators.size());
  return kSuccess;
}

Result ncclAllReduce(const void* in, void* out, std::size_t count, DataType dtype, RedOp op, Comm comm,
                     runjob::runtime::cuda::Stream stream) {
  STAND_IN("ncclAllReduce", of(comm));
  VIEW(from, in, count * stand_in::bytes_of(dtype));
  VIEW(to, out, count * stand_in::bytes_of(dtype));
  return queue(of(comm), stream, [=, c = of(comm), how = operator_of(of(comm), op)] {
    return reduce(c, from, to, count, 0, count, dtype, how);
  });
}

Result ncclReduce(const void* in, void* out, std::size_t count, DataType dtype, RedOp op, int root, Comm comm,
                  runjob::runtime::cuda::Stream stream) {
  STAND_IN("ncclReduce", of(comm));
  VIEW(from, in, count * stand_in::bytes_of(dtype));
  char* to = nullptr;
  if (of(comm)->rank() == root) to = static_cast<char*>(gpu().view(out, count * stand_in::bytes_of(dtype)));
  return queue(of(comm), stream, [=, c = of(comm), how = operator_of(of(comm), op)] {
    return reduce(c, from, to, count, 0, count, dtype, how);
  });
}

Result ncclReduceScatter(const void* in, void* out, std::size_t count, DataType dtype, RedOp op, Comm comm,
                         runjob::runtime::cuda::Stream stream) {
  STAND_IN("ncclReduceScatter", of(comm));
  const std::size_t whole = count * static_cast<std::size_t>(of(comm)->size());
  VIEW(from, in, whole * stand_in::bytes_of(dtype));
  VIEW(to, out, count * stand_in::bytes_of(dtype));
  return queue(of(comm), stream, [=, c = of(comm), how = operator_of(of(comm), op)] {
    return reduce(c, from, to, whole, count * static_cast<std::size_t>(c->rank()), count, dtype, how);
  });
}

Result ncclBroadcast(const void* in, void* out, std::size_t count, DataType dtype, int root, Comm comm,
                     runjob::runtime::cuda::Stream stream) {
  STAND_IN("ncclBroadcast", of(comm));
  const std::size_t bytes = count * stand_in::bytes_of(dtype);
  VIEW(to, out, bytes);
  char* from = to;
  if (of(comm)->rank() == root) from = static_cast<char*>(gpu().view(in, bytes));
  if (from == nullptr) return kInvalidArgument;
  return queue(of(comm), stream, [=, c = of(comm)] {
    std::vector<Exchange::Part> sends, receives;
    for (int peer = 0; c->rank() == root && peer < c->size(); ++peer) sends.push_back({peer, from, bytes});
    std::vector<char> arrived(bytes);  // on the root it would overwrite what is being sent
    receives.push_back({root, arrived.data(), bytes});
    if (!c->exchange->move(sends, receives)) return false;
    std::memcpy(to, arrived.data(), bytes);
    return true;
  });
}

Result ncclAllGather(const void* in, void* out, std::size_t count, DataType dtype, Comm comm,
                     runjob::runtime::cuda::Stream stream) {
  STAND_IN("ncclAllGather", of(comm));
  const std::size_t bytes = count * stand_in::bytes_of(dtype);
  VIEW(from, in, bytes);
  VIEW(to, out, bytes * static_cast<std::size_t>(of(comm)->size()));
  return queue(of(comm), stream, [=, c = of(comm)] {
    const std::vector<std::vector<char>> all = gather(c, from, bytes);
    for (std::size_t i = 0; i < all.size(); ++i) std::memcpy(to + i * bytes, all[i].data(), bytes);
    return !all.empty();
  });
}

Result ncclSend(const void* in, std::size_t count, DataType dtype, int peer, Comm comm,
                runjob::runtime::cuda::Stream stream) {
  STAND_IN("ncclSend", of(comm));
  return message(const_cast<void*>(in), count * stand_in::bytes_of(dtype), peer, comm, stream, true);
}

Result ncclRecv(void* out, std::size_t count, DataType dtype, int peer, Comm comm,
                runjob::runtime::cuda::Stream stream) {
  STAND_IN("ncclRecv", of(comm));
  return message(out, count * stand_in::bytes_of(dtype), peer, comm, stream, false);
}

Result ncclGroupStart() {
  ++group.depth;
  return kSuccess;
}

Result ncclGroupEnd() {
  if (--group.depth > 0) return kSuccess;
  STAND_IN("ncclGroupEnd", group.comm());
  end_aborts();
  end_collectives();
  end_messages();
  return kSuccess;
}

}  // extern "C"
#pragma GCC visibility pop
