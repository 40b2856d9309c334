#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

/// The part of TensorFlow's C interface that operations need. It is declared here, so that the build needs no
/// TensorFlow.
/// Source   tensorflow/c/kernels.h, ops.h, tf_tensor.h and tf_status.h of TensorFlow 2.13, the first version with all
///          functions.
extern "C" {
struct TF_AsyncOpKernelDoneCallback;
struct TF_KernelBuilder;
struct TF_OpDefinitionBuilder;
struct TF_OpKernelConstruction;
struct TF_OpKernelContext;
struct TF_ShapeHandle;
struct TF_ShapeInferenceContext;
struct TF_Status;
struct TF_Tensor;
struct TF_StringView {  // NOLINT(readability-identifier-naming): the name is TensorFlow's
  const char* data;
  std::size_t len;
};
struct TF_AllocatorAttributes {  // NOLINT(readability-identifier-naming)
  std::size_t struct_size;
  unsigned char on_host;
};
}

namespace runjob::tensorflow {

/// TF_DataType: those that collectives take.
enum class DataType : int {
  kFloat = 1,
  kDouble = 2,
  kInt32 = 3,
  kUint8 = 4,
  kInt16 = 5,
  kInt8 = 6,
  kInt64 = 9,
  kBool = 10,
  kBfloat16 = 14,
  kUint16 = 17,
  kHalf = 19,
};

/// TF_Code: those that we give.
enum class TfCode : int { kOk = 0, kUnknown = 2, kInvalidArgument = 3, kFailedPrecondition = 9, kAborted = 10 };

/// TensorFlow's functions, without their prefix.
struct CInterface {
  TF_Status* (*NewStatus)();
  void (*DeleteStatus)(TF_Status*);
  void (*SetStatus)(TF_Status*, TfCode, const char* message);
  TfCode (*GetCode)(const TF_Status*);
  const char* (*Message)(const TF_Status*);

  void (*DeleteTensor)(TF_Tensor*);
  void* (*TensorData)(const TF_Tensor*);
  std::size_t (*TensorByteSize)(const TF_Tensor*);
  DataType (*TensorType)(const TF_Tensor*);
  int (*NumDims)(const TF_Tensor*);
  std::int64_t (*Dim)(const TF_Tensor*, int dimension);

  TF_OpDefinitionBuilder* (*NewOpDefinitionBuilder)(const char* name);
  void (*OpDefinitionBuilderAddAttr)(TF_OpDefinitionBuilder*, const char* spec);
  void (*OpDefinitionBuilderAddInput)(TF_OpDefinitionBuilder*, const char* spec);
  void (*OpDefinitionBuilderAddOutput)(TF_OpDefinitionBuilder*, const char* spec);
  void (*OpDefinitionBuilderSetIsStateful)(TF_OpDefinitionBuilder*, bool);
  void (*OpDefinitionBuilderSetShapeInferenceFunction)(TF_OpDefinitionBuilder*,
                                                       void (*)(TF_ShapeInferenceContext*, TF_Status*));
  void (*RegisterOpDefinition)(TF_OpDefinitionBuilder*, TF_Status*);

  std::int64_t (*ShapeInferenceContextNumInputs)(TF_ShapeInferenceContext*);
  TF_ShapeHandle* (*NewShapeHandle)();
  void (*DeleteShapeHandle)(TF_ShapeHandle*);
  void (*ShapeInferenceContextGetInput)(TF_ShapeInferenceContext*, int, TF_ShapeHandle*, TF_Status*);
  void (*ShapeInferenceContextSetOutput)(TF_ShapeInferenceContext*, int, TF_ShapeHandle*, TF_Status*);
  TF_ShapeHandle* (*ShapeInferenceContextScalar)(TF_ShapeInferenceContext*);
  TF_ShapeHandle* (*ShapeInferenceContextVectorFromSize)(TF_ShapeInferenceContext*, std::size_t);
  int (*ShapeInferenceContextRankKnown)(TF_ShapeInferenceContext*, TF_ShapeHandle*);
  void (*ShapeInferenceContextWithRankAtLeast)(TF_ShapeInferenceContext*, TF_ShapeHandle*, std::int64_t,
                                               TF_ShapeHandle* result, TF_Status*);
  void (*ShapeInferenceContextSubshape)(TF_ShapeInferenceContext*, TF_ShapeHandle*, std::int64_t start,
                                        std::int64_t end, TF_ShapeHandle* result, TF_Status*);
  void (*ShapeInferenceContextConcatenateShapes)(TF_ShapeInferenceContext*, TF_ShapeHandle*, TF_ShapeHandle*,
                                                 TF_ShapeHandle* result, TF_Status*);
  void (*ShapeInferenceContextSetUnknownShape)(TF_ShapeInferenceContext*, TF_Status*);

  TF_KernelBuilder* (*NewKernelBuilder)(const char* op, const char* device, void* (*create)(TF_OpKernelConstruction*),
                                        void (*compute)(void*, TF_OpKernelContext*), void (*destroy)(void*));
  TF_KernelBuilder* (*NewAsyncKernelBuilder)(const char* op, const char* device,
                                             void* (*create)(TF_OpKernelConstruction*),
                                             void (*compute)(void*, TF_OpKernelContext*, TF_AsyncOpKernelDoneCallback*),
                                             void (*destroy)(void*));
  void (*RegisterKernelBuilder)(const char* name, TF_KernelBuilder*, TF_Status*);

  TF_StringView (*OpKernelConstruction_GetName)(TF_OpKernelConstruction*);
  void (*OpKernelConstruction_GetAttrSize)(TF_OpKernelConstruction*, const char*, std::int32_t* list_size,
                                           std::int32_t* total_size, TF_Status*);
  void (*OpKernelConstruction_GetAttrString)(TF_OpKernelConstruction*, const char*, char*, std::size_t, TF_Status*);
  void (*OpKernelConstruction_GetAttrInt32)(TF_OpKernelConstruction*, const char*, std::int32_t*, TF_Status*);
  void (*OpKernelConstruction_GetAttrFloat)(TF_OpKernelConstruction*, const char*, float*, TF_Status*);
  void (*OpKernelConstruction_GetAttrBool)(TF_OpKernelConstruction*, const char*, unsigned char*, TF_Status*);
  void (*OpKernelConstruction_Failure)(TF_OpKernelConstruction*, TF_Status*);

  int (*NumInputs)(TF_OpKernelContext*);
  void (*GetInput)(TF_OpKernelContext*, int, TF_Tensor**, TF_Status*);
  void (*SetOutput)(TF_OpKernelContext*, int, const TF_Tensor*, TF_Status*);
  TF_Tensor* (*AllocateOutput)(TF_OpKernelContext*, int, DataType, const std::int64_t* dims, int num_dims,
                               std::size_t bytes, TF_Status*);
  TF_Tensor* (*ForwardInputOrAllocateOutput)(TF_OpKernelContext*, const int* candidates, int num_candidates, int output,
                                             const std::int64_t* dims, int num_dims, int* forwarded, TF_Status*);
  TF_Tensor* (*AllocateTemp)(TF_OpKernelContext*, DataType, const std::int64_t* dims, int num_dims,
                             TF_AllocatorAttributes*, TF_Status*);
  void (*OpKernelContext_Failure)(TF_OpKernelContext*, TF_Status*);
  std::int64_t (*GetIterId)(TF_OpKernelContext*);
};

/// The functions of the TensorFlow that this process has loaded. Of use once open_tensorflow() has found them all.
extern CInterface tf;

/// Finds them, once. Returns what is missing; empty when nothing is.
std::string open_tensorflow();

/// True if TensorFlow's callbacks are std::function<void()> as this compiler knows it. TensorFlow exports a function
/// with a parameter of that type, and the type is part of its mangled name. libc++'s type, or another class, has
/// another name.
bool callbacks_are_ours();

}  // namespace runjob::tensorflow
