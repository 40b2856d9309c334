#include "bindings/tensorflow/collective_kernels.hpp"

#include <atomic>
#include <functional>
#include <utility>

#include "bindings/tensorflow/completion_thread.hpp"
#include "bindings/tensorflow/running_operation.hpp"

namespace runjob::tensorflow {
namespace {

template <std::size_t kIndex>
void* create(TF_OpKernelConstruction* construction) {
  return make_operation(kOperationTypes[kIndex], construction);
}

void destroy(void* operation) {
  delete static_cast<Operation*>(operation);
}

/// How long a thread of TensorFlow tries to run an operation itself when no other is in flight: three times the time of
/// a small one when all ranks arrive at once. It saves waking two threads.
constexpr double kPatienceSeconds = 200e-6;

std::atomic<int> in_flight{0};

/// A run that nobody waits for. It deletes itself when it has called TensorFlow back.
class AsynchronousRun {
 public:
  AsynchronousRun(const Operation& operation, TF_OpKernelContext* context, std::function<void()> done)
      : operation_(operation, context), done_(std::move(done)) {}

  void start() {
    const bool is_alone = in_flight.fetch_add(1) == 0;
    const runjob_handle handle = operation_.submit(is_alone ? kPatienceSeconds : 0);
    if (handle == 0) return call_back();
    const auto notify = [](void* run) {
      CompletionThread::current().add([run = static_cast<AsynchronousRun*>(run)] { run->end(); });
    };
    runjob_on_done(handle, notify, this);  // which cannot fail; this may be gone when it returns
  }

 private:
  void end() {
    operation_.end();
    call_back();
  }

  void call_back() {
    const std::function<void()> done = std::move(done_);
    in_flight.fetch_sub(1);
    delete this;  // first: with the call, what TensorFlow has lent is gone
    done();
  }

  RunningOperation operation_;
  std::function<void()> done_;
};

void compute_asynchronously(void* operation, TF_OpKernelContext* context, TF_AsyncOpKernelDoneCallback* done) {
  // TensorFlow passes the address of a std::function on its stack, and has no function to call it later: see
  // callbacks_are_ours().
  const auto& lent = *reinterpret_cast<const std::function<void()>*>(done);
  (new AsynchronousRun(*static_cast<const Operation*>(operation), context, lent))->start();
}

void compute(void* created, TF_OpKernelContext* context) {
  RunningOperation operation(*static_cast<const Operation*>(created), context);
  const runjob_handle handle = operation.submit();
  if (handle == 0) return;
  runjob_wait(handle, -1);
  operation.end();
}

template <std::size_t kIndex>
std::string register_kernel(bool is_asynchronous) {
  const char* name = kOperationTypes[kIndex].name;
  TF_KernelBuilder* builder =
      is_asynchronous ? tf.NewAsyncKernelBuilder(name, "CPU", create<kIndex>, compute_asynchronously, destroy)
                      : tf.NewKernelBuilder(name, "CPU", create<kIndex>, compute, destroy);
  const TfStatus status;
  tf.RegisterKernelBuilder(name, builder, status.get());
  return status.message();
}

template <std::size_t... kIndices>
std::string register_all(bool is_asynchronous, std::index_sequence<kIndices...>) {
  std::string error;
  (void)(... && (error = register_kernel<kIndices>(is_asynchronous)).empty());
  return error;
}

}  // namespace

std::string register_collective_kernels(bool is_asynchronous) {
  return register_all(is_asynchronous, std::make_index_sequence<kOperationTypes.size()>());
}

}  // namespace runjob::tensorflow
