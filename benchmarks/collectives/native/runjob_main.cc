#include <cstdio>
#include <exception>
#include <runjob/runjob.hpp>
#include <type_traits>

#include "benchmarks/collectives/native/loop.hpp"

namespace runjob::benchmark {
namespace {

// What runjob.hpp does not have yet is found out here, at compile time, so that the benchmark measures it as soon as it is there.
template <class World, class T>
concept HasReducescatter = requires(const World& world, std::span<const T> in, const std::string& name) {
  { world.reducescatter_async(in, name, ReduceOp::sum) } -> std::same_as<GatherHandle<T>>;
};
template <class World, class T>
concept HasReducescatterInto = requires(const World& world, std::span<const T> in, std::span<T> out,
                                        const std::string& name) {
  { world.reducescatter_async(in, out, name, ReduceOp::sum) } -> std::same_as<Handle>;
};
template <class World, class T>
concept HasAlltoall = requires(const World& world, std::span<const T> in, const std::string& name) {
  { world.alltoall_async(in, name) } -> std::same_as<GatherHandle<T>>;
};
template <class World, class T>
concept HasAlltoallInto = requires(const World& world, std::span<const T> in, std::span<T> out,
                                   const std::string& name) {
  { world.alltoall_async(in, out, name) } -> std::same_as<Handle>;
};

/// runjob's C++ interface. A result that belongs to its handle is kept until the slot's next operation.
template <class T>
class Runjob final : public Interface {
 public:
  explicit Runjob(Operation operation) : operation_(operation) {}

  std::string library() const override { return std::string("runjob ") + runjob_version(); }
  int rank() const override { return world_.rank(); }
  int size() const override { return world_.size(); }
  std::string lacks() const override { return lacks(world_); }

  void run(Slot& slot) override {
    submit(world_, slot);
    finish();
  }

  void start(Slot& slot) override { submit(world_, slot); }

  void finish() override {
    for (const std::size_t index : with_output_) outputs_[index].wait();
    with_output_.clear();
    for (const Handle& handle : in_place_) handle.wait();
    in_place_.clear();
  }

  const std::byte* result(const Slot& slot) const override {
    if (slot.index < outputs_.size()) return reinterpret_cast<const std::byte*>(outputs_[slot.index].values().data());
    return works_in_place() ? slot.input : slot.output;
  }

  void barrier() override { world_.barrier("between sizes"); }

  std::int64_t of_rank_0(std::int64_t value) override {
    world_.broadcast(std::span(&value, 1), 0, "iterations");
    return value;
  }

 private:
  bool works_in_place() const { return operation_ == Operation::allreduce || operation_ == Operation::broadcast; }

  template <class World>
  std::string lacks(const World&) const {
    constexpr bool reducescatter = HasReducescatter<World, T> || HasReducescatterInto<World, T>;
    constexpr bool alltoall = HasAlltoall<World, T> || HasAlltoallInto<World, T>;
    if (operation_ == Operation::reducescatter && !reducescatter) return "runjob.hpp has no reducescatter";
    if (operation_ == Operation::alltoall && !alltoall) return "runjob.hpp has no alltoall";
    return "";
  }

  template <class World>
  void submit(const World& world, Slot& slot) {
    const std::span<T> in(reinterpret_cast<T*>(slot.input), slot.inputs);
    const std::span<T> out(reinterpret_cast<T*>(slot.output), slot.outputs);
    switch (operation_) {
      case Operation::allreduce:
        in_place_.push_back(world.allreduce_async(in, slot.name));
        break;
      case Operation::broadcast:
        in_place_.push_back(world.broadcast_async(in, slot.root, slot.name));
        break;
      case Operation::barrier:
        in_place_.push_back(world.barrier_async(slot.name));
        break;
      case Operation::allgather:
        keep(slot, world.allgather_async(std::span<const T>(in), slot.name));
        break;
      case Operation::reducescatter:
        submit_reducescatter(world, slot, std::span<const T>(in), out);
        break;
      case Operation::alltoall:
        submit_alltoall(world, slot, std::span<const T>(in), out);
        break;
    }
  }

  template <class World>
  void submit_reducescatter(const World& world, Slot& slot, std::span<const T> in, std::span<T> out) {
    if constexpr (HasReducescatterInto<World, T>) {
      in_place_.push_back(world.reducescatter_async(in, out, slot.name, ReduceOp::sum));
    } else if constexpr (HasReducescatter<World, T>) {
      keep(slot, world.reducescatter_async(in, slot.name, ReduceOp::sum));
    }
  }

  template <class World>
  void submit_alltoall(const World& world, Slot& slot, std::span<const T> in, std::span<T> out) {
    if constexpr (HasAlltoallInto<World, T>) {
      in_place_.push_back(world.alltoall_async(in, out, slot.name));
    } else if constexpr (HasAlltoall<World, T>) {
      keep(slot, world.alltoall_async(in, slot.name));
    }
  }

  void keep(const Slot& slot, GatherHandle<T> handle) {
    if (outputs_.size() <= slot.index) outputs_.resize(slot.index + 1);
    outputs_[slot.index] = std::move(handle);
    with_output_.push_back(slot.index);
  }

  Operation operation_;
  Communicator world_;
  std::vector<Handle> in_place_;
  std::vector<GatherHandle<T>> outputs_;  // by slot
  std::vector<std::size_t> with_output_;  // the slots whose operation is in flight
};

template <class T>
void measure_elements(const Arguments& arguments) {
  Runjob<T> interface(arguments.operation);
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
