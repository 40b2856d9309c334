#include <algorithm>
#include <cstdio>
#include <dlfcn.h>
#include <exception>
#include <mpi.h>

#include "benchmarks/collectives/native/loop.hpp"

namespace runjob::benchmark {
namespace {

/// The element type of a dtype for reductions; MPI_DATATYPE_NULL if this MPI has none. The standard has no 16-bit
/// floats.
MPI_Datatype reducible(DType dtype) {
  if (dtype == DType::float32) return MPI_FLOAT;
#ifdef MPIX_C_FLOAT16
  if (dtype == DType::float16) return MPIX_C_FLOAT16;
#endif
#if defined(MPIX_BFLOAT16)
  if (dtype == DType::bfloat16) return MPIX_BFLOAT16;
#endif
  return MPI_DATATYPE_NULL;
}

bool is_reduction(Operation operation) {
  return operation == Operation::allreduce || operation == Operation::reducescatter;
}

/// Plain MPI, as a program that knows no more than the standard calls it.
class Mpi final : public Interface {
 public:
  explicit Mpi(const Arguments& arguments) : operation_(arguments.operation), dtype_(arguments.dtype) {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
    type_ = reducible(dtype_);
    // Where nothing is computed, any type of that width will do.
    if (type_ == MPI_DATATYPE_NULL && !is_reduction(operation_)) type_ = MPI_UINT16_T;
  }

  std::string library() const override {
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
    int length = 0;
    MPI_Get_library_version(text, &length);
    std::string line(text, std::min(std::string(text).find_first_of("\n,"), std::string(text).size()));
    std::replace(line.begin(), line.end(), '\t', ' ');
    Dl_info file{};
    if (dladdr(reinterpret_cast<void*>(&MPI_Get_library_version), &file) != 0)
      line += std::string(", ") + file.dli_fname;
    return line;
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  std::string lacks() const override {
    if (type_ != MPI_DATATYPE_NULL) return "";
    return std::string("this MPI reduces no ") + name_of(dtype_);
  }

  void run(Slot& slot) override {
    const int inputs = static_cast<int>(slot.inputs);
    const int block = inputs / size_;
    switch (operation_) {
      case Operation::allreduce:
        MPI_Allreduce(MPI_IN_PLACE, slot.input, inputs, type_, MPI_SUM, MPI_COMM_WORLD);
        break;
      case Operation::allgather:
        MPI_Allgather(slot.input, inputs, type_, slot.output, inputs, type_, MPI_COMM_WORLD);
        break;
      case Operation::broadcast:
        MPI_Bcast(slot.input, inputs, type_, slot.root, MPI_COMM_WORLD);
        break;
      case Operation::reducescatter:
        MPI_Reduce_scatter_block(slot.input, slot.output, block, type_, MPI_SUM, MPI_COMM_WORLD);
        break;
      case Operation::alltoall:
        MPI_Alltoall(slot.input, block, type_, slot.output, block, type_, MPI_COMM_WORLD);
        break;
      case Operation::barrier:
        MPI_Barrier(MPI_COMM_WORLD);
        break;
    }
  }

  void start(Slot& slot) override {
    const int inputs = static_cast<int>(slot.inputs);
    const int block = inputs / size_;
    MPI_Request* request = &requests_.emplace_back(MPI_REQUEST_NULL);
    switch (operation_) {
      case Operation::allreduce:
        MPI_Iallreduce(MPI_IN_PLACE, slot.input, inputs, type_, MPI_SUM, MPI_COMM_WORLD, request);
        break;
      case Operation::allgather:
        MPI_Iallgather(slot.input, inputs, type_, slot.output, inputs, type_, MPI_COMM_WORLD, request);
        break;
      case Operation::broadcast:
        MPI_Ibcast(slot.input, inputs, type_, slot.root, MPI_COMM_WORLD, request);
        break;
      case Operation::reducescatter:
        MPI_Ireduce_scatter_block(slot.input, slot.output, block, type_, MPI_SUM, MPI_COMM_WORLD, request);
        break;
      case Operation::alltoall:
        MPI_Ialltoall(slot.input, block, type_, slot.output, block, type_, MPI_COMM_WORLD, request);
        break;
      case Operation::barrier:
        MPI_Ibarrier(MPI_COMM_WORLD, request);
        break;
    }
  }

  void finish() override {
    MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
    requests_.clear();
  }

  const std::byte* result(const Slot& slot) const override {
    const bool in_place = operation_ == Operation::allreduce || operation_ == Operation::broadcast;
    return in_place ? slot.input : slot.output;
  }

  void barrier() override { MPI_Barrier(MPI_COMM_WORLD); }

  std::int64_t of_rank_0(std::int64_t value) override {
    MPI_Bcast(&value, 1, MPI_INT64_T, 0, MPI_COMM_WORLD);
    return value;
  }

 private:
  Operation operation_;
  DType dtype_;
  MPI_Datatype type_ = MPI_DATATYPE_NULL;
  int rank_ = 0;
  int size_ = 1;
  std::vector<MPI_Request> requests_;
};

}  // namespace
}  // namespace runjob::benchmark

/// One rank of an MPI's side of benchmarks/collectives; see arguments.hpp.
int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  try {
    using namespace runjob::benchmark;
    const Arguments arguments = parse_arguments(argc, argv);
    Mpi interface(arguments);
    measure(interface, arguments);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "collectives_mpi: error: %s\n", error.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
  return 0;
}
