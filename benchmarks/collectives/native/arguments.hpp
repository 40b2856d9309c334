#pragma once

#include <cstddef>
#include <string>
#include <vector>

/// The native programs of benchmarks/collectives. They need only the C++ library and the interface that they measure,
/// because each MPI compiles its own with its own mpicxx.
namespace runjob::benchmark {

enum class Operation { allreduce, allgather, broadcast, reducescatter, alltoall, barrier };
enum class DType { float32, float16, bfloat16 };

/// asynchronous: `in_flight` operations are started, then all are waited for.
enum class Mode { blocking, asynchronous };

/// Where the buffers are; symmetric: in runjob's memory for direct access, which only runjob has.
enum class Memory { ordinary, symmetric };

struct Size {
  std::size_t bytes = 0;      // bytes of each rank's input
  std::size_t in_flight = 1;  // with Mode::asynchronous
};

/// The arguments of every program:
///
///     --op NAME --dtype NAME --mode NAME [--memory NAME] --bytes LIST [--in-flight LIST] [--np N]
///     [--budget-ms N] [--min-iterations N] [--max-iterations N]
///
/// A list is separated by commas; --in-flight has as many entries as --bytes.
struct Arguments {
  Operation operation = Operation::allreduce;
  DType dtype = DType::float32;
  Mode mode = Mode::blocking;
  Memory memory = Memory::ordinary;
  std::vector<Size> sizes;
  int np = 1;              // the limits only: the other programs are started by a launcher
  double budget_ms = 100;  // how long to measure each size, as long as the number of iterations stays in its bounds
  long min_iterations = 5;
  long max_iterations = 10000;
};

/// Errors  std::invalid_argument naming the argument.
Arguments parse_arguments(int argc, char** argv);

const char* name_of(Operation operation);
const char* name_of(DType dtype);
const char* name_of(Mode mode);

}  // namespace runjob::benchmark
