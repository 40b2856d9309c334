#include "bindings/tensorflow/op_definitions.hpp"

#include <initializer_list>
#include <memory>
#include <string>

#include "bindings/tensorflow/dtypes.hpp"
#include "bindings/tensorflow/operation.hpp"
#include "bindings/tensorflow/place.hpp"
#include "bindings/tensorflow/status.hpp"

namespace runjob::tensorflow {
namespace {

using Shape = std::unique_ptr<TF_ShapeHandle, void (*)(TF_ShapeHandle*)>;

Shape owned(TF_ShapeHandle* handle) {
  return {handle, tf.DeleteShapeHandle};
}

void as_inputs(TF_ShapeInferenceContext* context, TF_Status* status) {
  const Shape shape = owned(tf.NewShapeHandle());
  const auto count = static_cast<int>(tf.ShapeInferenceContextNumInputs(context));
  for (int i = 0; i < count && tf.GetCode(status) == TfCode::kOk; ++i) {
    tf.ShapeInferenceContextGetInput(context, i, shape.get(), status);
    tf.ShapeInferenceContextSetOutput(context, i, shape.get(), status);
  }
}

/// As input `index`, but with any number of rows.
void set_rows(TF_ShapeInferenceContext* context, int index, TF_Status* status) {
  const Shape shape = owned(tf.NewShapeHandle());
  tf.ShapeInferenceContextGetInput(context, index, shape.get(), status);
  if (tf.GetCode(status) != TfCode::kOk) return;
  if (tf.ShapeInferenceContextRankKnown(context, shape.get()) == 0) {
    tf.ShapeInferenceContextSetUnknownShape(context, status);
    return;
  }
  tf.ShapeInferenceContextWithRankAtLeast(context, shape.get(), 1, shape.get(), status);
  if (tf.GetCode(status) != TfCode::kOk) return;
  constexpr auto kUnknown = static_cast<std::size_t>(-1);
  const Shape rows = owned(tf.ShapeInferenceContextVectorFromSize(context, kUnknown));
  const Shape row = owned(tf.NewShapeHandle()), result = owned(tf.NewShapeHandle());
  tf.ShapeInferenceContextSubshape(context, shape.get(), 1, INT64_MAX, row.get(), status);
  if (tf.GetCode(status) != TfCode::kOk) return;
  tf.ShapeInferenceContextConcatenateShapes(context, rows.get(), row.get(), result.get(), status);
  if (tf.GetCode(status) == TfCode::kOk) tf.ShapeInferenceContextSetOutput(context, index, result.get(), status);
}

void other_rows(TF_ShapeInferenceContext* context, TF_Status* status) {
  const auto count = static_cast<int>(tf.ShapeInferenceContextNumInputs(context));
  for (int i = 0; i < count && tf.GetCode(status) == TfCode::kOk; ++i) set_rows(context, i, status);
}

/// Two inputs, the tensor and the splits; two outputs, rows and the splits of what has come.
void exchanged_rows(TF_ShapeInferenceContext* context, TF_Status* status) {
  set_rows(context, 0, status);
  if (tf.GetCode(status) != TfCode::kOk) return;
  const Shape splits = owned(tf.ShapeInferenceContextVectorFromSize(context, static_cast<std::size_t>(-1)));
  tf.ShapeInferenceContextSetOutput(context, 1, splits.get(), status);
}

void scalar(TF_ShapeInferenceContext* context, TF_Status* status) {
  const Shape shape = owned(tf.ShapeInferenceContextScalar(context));
  tf.ShapeInferenceContextSetOutput(context, 0, shape.get(), status);
}

void nothing(TF_ShapeInferenceContext*, TF_Status*) {}

using InferShape = void (*)(TF_ShapeInferenceContext*, TF_Status*);

InferShape shape_of(Kind kind) {
  switch (kind) {
    case Kind::kAllreduce:
    case Kind::kBroadcast:
      return as_inputs;
    case Kind::kAllgather:
    case Kind::kReducescatter:
      return other_rows;
    case Kind::kAlltoall:
      return exchanged_rows;
    case Kind::kJoin:
      return scalar;
    case Kind::kBarrier:
      return nothing;
  }
  return nothing;
}

/// The names of the types that collectives take: "{uint8, int8}".
std::string allowed_types() {
  std::string names;
  for (const DtypeRow& row : kDtypes) names.append(names.empty() ? "{" : ", ").append(row.name);
  return names + "}";
}

void add_attributes(TF_OpDefinitionBuilder* builder, const OperationType& type) {
  const auto add = [&](std::initializer_list<const char*> specs) {
    for (const char* spec : specs) tf.OpDefinitionBuilderAddAttr(builder, spec);
  };
  if (type.kind == Kind::kJoin) return;
  if (type.kind != Kind::kBarrier) {
    const std::string types = type.is_grouped ? "T: list(" + allowed_types() + ") >= 1" : "T: " + allowed_types();
    add({types.c_str()});
  }
  if (is_reduction(type.kind))
    add({"reduce_op: int = 0", "prescale_factor: float = 1.0", "postscale_factor: float = 1.0"});
  if (type.kind == Kind::kBroadcast) add({"root_rank: int"});
  if (type.kind == Kind::kAllreduce) add({"compression: int = 0"});
  add({"process_set_id: int = 0", "ignore_name_scope: bool = false", "tensor_name: string = ''"});
}

void add_tensors(TF_OpDefinitionBuilder* builder, const OperationType& type) {
  if (type.kind == Kind::kJoin) {
    tf.OpDefinitionBuilderAddOutput(builder, "output: int32");
  } else if (type.kind != Kind::kBarrier) {
    tf.OpDefinitionBuilderAddInput(builder, type.is_grouped ? "tensors: T" : "tensor: T");
    tf.OpDefinitionBuilderAddOutput(builder, type.is_grouped ? "outputs: T" : "output: T");
  }
  if (type.kind == Kind::kAlltoall) {
    tf.OpDefinitionBuilderAddInput(builder, "splits: int32");
    tf.OpDefinitionBuilderAddOutput(builder, "received_splits: int32");
  }
}

std::string finish(TF_OpDefinitionBuilder* builder, InferShape infer_shape) {
  tf.OpDefinitionBuilderSetIsStateful(builder, true);
  tf.OpDefinitionBuilderSetShapeInferenceFunction(builder, infer_shape);
  const TfStatus status;
  tf.RegisterOpDefinition(builder, status.get());
  return status.message();
}

}  // namespace

std::string define_operations() {
  for (const OperationType& type : kOperationTypes) {
    TF_OpDefinitionBuilder* builder = tf.NewOpDefinitionBuilder(type.name);
    add_attributes(builder, type);
    add_tensors(builder, type);
    if (std::string error = finish(builder, shape_of(type.kind)); !error.empty()) return error;
  }
  for (const PlaceType& type : kPlaceTypes) {
    TF_OpDefinitionBuilder* builder = tf.NewOpDefinitionBuilder(type.name);
    if (type.of_set != nullptr) tf.OpDefinitionBuilderAddAttr(builder, "process_set_id: int = 0");
    tf.OpDefinitionBuilderAddOutput(builder, "output: int32");
    if (std::string error = finish(builder, scalar); !error.empty()) return error;
  }
  return {};
}

}  // namespace runjob::tensorflow
