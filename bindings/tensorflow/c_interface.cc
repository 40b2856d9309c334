#include "bindings/tensorflow/c_interface.hpp"

#include <dlfcn.h>
#include <link.h>
#include <string_view>

namespace runjob::tensorflow {
namespace {

/// The library with TensorFlow's C interface. It is already loaded if the user has imported TensorFlow; otherwise it is
/// this process.
void* loaded_tensorflow() {
  std::string path;
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* found) {
        const std::string_view name = info->dlpi_name;
        if (name.find("/libtensorflow_framework.so") == std::string_view::npos) return 0;
        *static_cast<std::string*>(found) = name;
        return 1;
      },
      &path);
  return ::dlopen(path.empty() ? nullptr : path.c_str(), RTLD_NOW | RTLD_NOLOAD);
}

struct Finder {
  void* library;
  std::string missing;

  template <class Function>
  void find(const char* name, Function*& function) {
    function = reinterpret_cast<Function*>(::dlsym(library, name));
    if (function == nullptr && missing.empty()) missing = name;
  }
};

void find_basics(Finder& finder) {
  finder.find("TF_NewStatus", tf.NewStatus);
  finder.find("TF_DeleteStatus", tf.DeleteStatus);
  finder.find("TF_SetStatus", tf.SetStatus);
  finder.find("TF_GetCode", tf.GetCode);
  finder.find("TF_Message", tf.Message);
  finder.find("TF_DeleteTensor", tf.DeleteTensor);
  finder.find("TF_TensorData", tf.TensorData);
  finder.find("TF_TensorByteSize", tf.TensorByteSize);
  finder.find("TF_TensorType", tf.TensorType);
  finder.find("TF_NumDims", tf.NumDims);
  finder.find("TF_Dim", tf.Dim);
}

void find_definitions(Finder& finder) {
  finder.find("TF_NewOpDefinitionBuilder", tf.NewOpDefinitionBuilder);
  finder.find("TF_OpDefinitionBuilderAddAttr", tf.OpDefinitionBuilderAddAttr);
  finder.find("TF_OpDefinitionBuilderAddInput", tf.OpDefinitionBuilderAddInput);
  finder.find("TF_OpDefinitionBuilderAddOutput", tf.OpDefinitionBuilderAddOutput);
  finder.find("TF_OpDefinitionBuilderSetIsStateful", tf.OpDefinitionBuilderSetIsStateful);
  finder.find("TF_OpDefinitionBuilderSetShapeInferenceFunction", tf.OpDefinitionBuilderSetShapeInferenceFunction);
  finder.find("TF_RegisterOpDefinition", tf.RegisterOpDefinition);
  finder.find("TF_ShapeInferenceContextNumInputs", tf.ShapeInferenceContextNumInputs);
  finder.find("TF_NewShapeHandle", tf.NewShapeHandle);
  finder.find("TF_DeleteShapeHandle", tf.DeleteShapeHandle);
  finder.find("TF_ShapeInferenceContextGetInput", tf.ShapeInferenceContextGetInput);
  finder.find("TF_ShapeInferenceContextSetOutput", tf.ShapeInferenceContextSetOutput);
  finder.find("TF_ShapeInferenceContextScalar", tf.ShapeInferenceContextScalar);
  finder.find("TF_ShapeInferenceContextVectorFromSize", tf.ShapeInferenceContextVectorFromSize);
  finder.find("TF_ShapeInferenceContextRankKnown", tf.ShapeInferenceContextRankKnown);
  finder.find("TF_ShapeInferenceContextWithRankAtLeast", tf.ShapeInferenceContextWithRankAtLeast);
  finder.find("TF_ShapeInferenceContextSubshape", tf.ShapeInferenceContextSubshape);
  finder.find("TF_ShapeInferenceContextConcatenateShapes", tf.ShapeInferenceContextConcatenateShapes);
  finder.find("TF_ShapeInferenceContextSetUnknownShape", tf.ShapeInferenceContextSetUnknownShape);
}

void find_kernels(Finder& finder) {
  finder.find("TF_NewKernelBuilder", tf.NewKernelBuilder);
  finder.find("TF_NewAsyncKernelBuilder", tf.NewAsyncKernelBuilder);
  finder.find("TF_RegisterKernelBuilder", tf.RegisterKernelBuilder);
  finder.find("TF_OpKernelConstruction_GetName", tf.OpKernelConstruction_GetName);
  finder.find("TF_OpKernelConstruction_GetAttrSize", tf.OpKernelConstruction_GetAttrSize);
  finder.find("TF_OpKernelConstruction_GetAttrString", tf.OpKernelConstruction_GetAttrString);
  finder.find("TF_OpKernelConstruction_GetAttrInt32", tf.OpKernelConstruction_GetAttrInt32);
  finder.find("TF_OpKernelConstruction_GetAttrFloat", tf.OpKernelConstruction_GetAttrFloat);
  finder.find("TF_OpKernelConstruction_GetAttrBool", tf.OpKernelConstruction_GetAttrBool);
  finder.find("TF_OpKernelConstruction_Failure", tf.OpKernelConstruction_Failure);
  finder.find("TF_NumInputs", tf.NumInputs);
  finder.find("TF_GetInput", tf.GetInput);
  finder.find("TF_SetOutput", tf.SetOutput);
  finder.find("TF_AllocateOutput", tf.AllocateOutput);
  finder.find("TF_ForwardInputOrAllocateOutput", tf.ForwardInputOrAllocateOutput);
  finder.find("TF_AllocateTemp", tf.AllocateTemp);
  finder.find("TF_OpKernelContext_Failure", tf.OpKernelContext_Failure);
  finder.find("TF_GetIterId", tf.GetIterId);
}

}  // namespace

CInterface tf;

std::string open_tensorflow() {
  Finder finder{loaded_tensorflow(), {}};
  find_basics(finder);
  find_definitions(finder);
  find_kernels(finder);
  return finder.missing;
}

bool callbacks_are_ours() {
  // tensorflow::ThreadPoolDevice::ComputeAsync(AsyncOpKernel*, OpKernelContext*, std::function<void()>) passes kernels
  // their callback.
  constexpr const char* kName =
      "_ZN10tensorflow16ThreadPoolDevice12ComputeAsyncEPNS_13AsyncOpKernelEPNS_15OpKernelContextESt8functionIFvvEE";
  return ::dlsym(loaded_tensorflow(), kName) != nullptr;
}

}  // namespace runjob::tensorflow
