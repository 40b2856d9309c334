#pragma once

#include <array>
#include <cstdint>
#include <runjob/runjob.h>
#include <string>

#include "bindings/tensorflow/c_interface.hpp"

namespace runjob::tensorflow {

/// The collectives that are operations of TensorFlow's.
enum class Kind : std::int32_t {
  kAllreduce = RUNJOB_ALLREDUCE,
  kAllgather = RUNJOB_ALLGATHER,
  kBroadcast = RUNJOB_BROADCAST,
  kAlltoall = RUNJOB_ALLTOALL,
  kReducescatter = RUNJOB_REDUCESCATTER,
  kJoin = RUNJOB_JOIN,
  kBarrier = RUNJOB_BARRIER
};

/// One operation as TensorFlow knows it. Those with tensors have a grouped form, except for alltoall.
struct OperationType {
  const char* name;  ///< "HorovodGroupedAllreduce"
  const char* wire;  ///< how its names begin among the ranks: "grouped_allreduce"
  Kind kind;
  bool is_grouped;
};

inline constexpr std::array<OperationType, 11> kOperationTypes = {{
    {"HorovodAllreduce", "allreduce", Kind::kAllreduce, false},
    {"HorovodGroupedAllreduce", "grouped_allreduce", Kind::kAllreduce, true},
    {"HorovodAllgather", "allgather", Kind::kAllgather, false},
    {"HorovodGroupedAllgather", "grouped_allgather", Kind::kAllgather, true},
    {"HorovodBroadcast", "broadcast", Kind::kBroadcast, false},
    {"HorovodGroupedBroadcast", "grouped_broadcast", Kind::kBroadcast, true},
    {"HorovodAlltoall", "alltoall", Kind::kAlltoall, false},
    {"HorovodReducescatter", "reducescatter", Kind::kReducescatter, false},
    {"HorovodGroupedReducescatter", "grouped_reducescatter", Kind::kReducescatter, true},
    {"HorovodJoin", "join", Kind::kJoin, false},
    {"HorovodBarrier", "barrier", Kind::kBarrier, false},
}};

constexpr bool is_reduction(Kind kind) {
  return kind == Kind::kAllreduce || kind == Kind::kReducescatter;
}

/// One node of a graph, or one eager operation, with its attributes.
struct Operation {
  const OperationType* type;
  std::string name;  ///< among the ranks
  int reduce_op = 0;
  int compression = 0;
  double prescale = 1, postscale = 1;
  int root = 0;
  int process_set = 0;
};

/// Reads the attributes. Returns null after a failure, which it reports to TensorFlow.
Operation* make_operation(const OperationType& type, TF_OpKernelConstruction* construction);

}  // namespace runjob::tensorflow
