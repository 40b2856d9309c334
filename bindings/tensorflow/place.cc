#include "bindings/tensorflow/place.hpp"

#include <utility>

#include "bindings/tensorflow/status.hpp"

namespace runjob::tensorflow {
namespace {

struct PlaceKernel {
  const PlaceType* type;
  std::int32_t process_set = 0;
};

template <std::size_t kIndex>
void* create_place(TF_OpKernelConstruction* construction) {
  auto* kernel = new PlaceKernel{&kPlaceTypes[kIndex]};
  if (kernel->type->of_set == nullptr) return kernel;
  const TfStatus status;
  tf.OpKernelConstruction_GetAttrInt32(construction, "process_set_id", &kernel->process_set, status.get());
  if (!status.ok()) tf.OpKernelConstruction_Failure(construction, status.get());
  return kernel;
}

void destroy_place(void* kernel) {
  delete static_cast<PlaceKernel*>(kernel);
}

void compute_place(void* created, TF_OpKernelContext* context) {
  const auto& kernel = *static_cast<const PlaceKernel*>(created);
  const int value = kernel.process_set == 0 ? kernel.type->of_job() : kernel.type->of_set(kernel.process_set);
  TfStatus status;
  if (runjob_is_initialized() == 0) {
    status.set(TfCode::kFailedPrecondition,
               std::string(kernel.type->name) + ": runjob is not initialized: call init() first");
  } else if (value < 0) {
    status.set(TfCode::kInvalidArgument,
               std::string(kernel.type->name) + ": there is no process set " + std::to_string(kernel.process_set));
  } else if (TF_Tensor* output =
                 tf.AllocateOutput(context, 0, DataType::kInt32, nullptr, 0, sizeof(value), status.get())) {
    *static_cast<std::int32_t*>(tf.TensorData(output)) = value;
    tf.DeleteTensor(output);
  }
  if (!status.ok()) tf.OpKernelContext_Failure(context, status.get());
}

template <std::size_t kIndex>
std::string register_kernel() {
  const char* name = kPlaceTypes[kIndex].name;
  const TfStatus status;
  tf.RegisterKernelBuilder(name, tf.NewKernelBuilder(name, "CPU", create_place<kIndex>, compute_place, destroy_place),
                           status.get());
  return status.message();
}

template <std::size_t... kIndices>
std::string register_all(std::index_sequence<kIndices...>) {
  std::string error;
  (void)(... && (error = register_kernel<kIndices>()).empty());
  return error;
}

}  // namespace

int process_set_included(std::int32_t process_set) {
  if (runjob_process_set_size(process_set) < 0) return -1;
  return runjob_process_set_rank(process_set) >= 0 ? 1 : 0;
}

std::string register_place_kernels() {
  return register_all(std::make_index_sequence<kPlaceTypes.size()>());
}

}  // namespace runjob::tensorflow
