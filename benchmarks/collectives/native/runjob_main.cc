#include <cstdio>
#include <exception>
#include <runjob/runjob.hpp>
#include <vector>

#include "benchmarks/collectives/native/loop.hpp"

namespace runjob::benchmark {
namespace {

/// runjob's C++ interface.
template <class T>
class Runjob final : public Interface {
 public:
  explicit Runjob(const Arguments& arguments) : operation_(arguments.operation), memory_(arguments.memory) {}

  std::string library() const override { return std::string("runjob ") + runjob_version(); }
  int rank() const override { return world_.rank(); }
  int size() const override { return world_.size(); }
  std::string lacks() const override { return ""; }

  void run(Slot& slot) override {
    const std::span<T> in(reinterpret_cast<T*>(slot.input), slot.inputs);
    switch (operation_) {
      case Operation::allreduce:
        return world_.allreduce(in, slot.name);
      case Operation::broadcast:
        return world_.broadcast(in, slot.root, slot.name);
      case Operation::barrier:
        return world_.barrier(slot.name);
      case Operation::allgather:
        return world_.allgather(std::span<const T>(in), output(slot), slot.name);
      case Operation::reducescatter:
        return world_.reducescatter(std::span<const T>(in), output(slot), slot.name);
      case Operation::alltoall:
        return world_.alltoall(std::span<const T>(in), output(slot), slot.name);
    }
  }

  void start(Slot& slot) override {
    const std::span<T> in(reinterpret_cast<T*>(slot.input), slot.inputs);
    switch (operation_) {
      case Operation::allreduce:
        return in_place_.push_back(world_.allreduce_async(in, slot.name));
      case Operation::broadcast:
        return in_place_.push_back(world_.broadcast_async(in, slot.root, slot.name));
      case Operation::barrier:
        return in_place_.push_back(world_.barrier_async(slot.name));
      case Operation::allgather:
        return with_output_.push_back(world_.allgather_async(std::span<const T>(in), slot.name, 1, output(slot)));
      case Operation::reducescatter:
        return with_output_.push_back(
            world_.reducescatter_async(std::span<const T>(in), slot.name, ReduceOp::sum, {}, 1, output(slot)));
      case Operation::alltoall:
        return with_output_.push_back(world_.alltoall_async(std::span<const T>(in), slot.name, {}, 1, output(slot)));
    }
  }

  void finish() override {
    for (const GatherHandle<T>& handle : with_output_) handle.wait();
    with_output_.clear();
    for (const Handle& handle : in_place_) handle.wait();
    in_place_.clear();
  }

  std::byte* allocate(std::size_t bytes) override {
    if (memory_ == Memory::ordinary) return Interface::allocate(bytes);
    symmetric_.emplace_back(bytes);
    return reinterpret_cast<std::byte*>(symmetric_.back().data());
  }

  void free(std::byte* memory) override {
    if (memory_ == Memory::ordinary) return Interface::free(memory);
    std::erase_if(symmetric_,
                  [&](const auto& buffer) { return reinterpret_cast<std::byte*>(buffer.data()) == memory; });
  }

  const std::byte* result(const Slot& slot) const override { return works_in_place() ? slot.input : slot.output; }

  void barrier() override { world_.barrier("between sizes"); }

  std::int64_t of_rank_0(std::int64_t value) override {
    world_.broadcast(std::span(&value, 1), 0, "iterations");
    return value;
  }

 private:
  bool works_in_place() const { return operation_ == Operation::allreduce || operation_ == Operation::broadcast; }

  static std::span<T> output(const Slot& slot) { return {reinterpret_cast<T*>(slot.output), slot.outputs}; }

  Operation operation_;
  Memory memory_;
  std::vector<SymmetricBuffer<std::uint8_t>> symmetric_;
  Communicator world_;
  std::vector<Handle> in_place_;
  std::vector<GatherHandle<T>> with_output_;
};

template <class T>
void measure_elements(const Arguments& arguments) {
  Runjob<T> interface(arguments);
  measure(interface, arguments);
}

void measure_runjob(const Arguments& arguments) {
  runjob::init();
  switch (arguments.dtype) {
    case DType::float32:
      measure_elements<float>(arguments);
      break;
    case DType::float16:
      measure_elements<Float16>(arguments);
      break;
    case DType::bfloat16:
      measure_elements<Bfloat16>(arguments);
      break;
  }
  runjob::shutdown();
}

}  // namespace
}  // namespace runjob::benchmark

/// One rank of runjob's side of benchmarks/collectives; see arguments.hpp.
int main(int argc, char** argv) {
  try {
    runjob::benchmark::measure_runjob(runjob::benchmark::parse_arguments(argc, argv));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "collectives_benchmark: error: %s\n", error.what());
    return 1;
  }
  return 0;
}
