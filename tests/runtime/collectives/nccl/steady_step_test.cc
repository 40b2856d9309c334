#include <unistd.h>

#include <nlohmann/json.hpp>

#include "tests/runtime/collectives/nccl/gpu_ranks.hpp"

using namespace runjob::runtime;

namespace {

using Floats = std::vector<float>;
using Counts = std::map<std::string, std::int64_t>;

constexpr int kSteps = 30;
constexpr char kCounted[] =
    "event_create,stream_create,memory_allocate,host_allocate,event_record,stream_wait,ncclAllReduce,ncclGroupEnd";

/// Lets the runtime make the events that so many operations in flight need: its thread that frees them looks each
/// millisecond.
void fill_pool(const UserStream& stream, const runjob_tensor& tensor) {
  std::vector<runjob_handle> handles;
  for (int i = 0; i < 2 * kSteps; ++i)
    handles.push_back(start(gpu_operation(("fill" + std::to_string(i)).c_str(), RUNJOB_ALLREDUCE, tensor, stream)));
  for (const runjob_handle handle : handles) check(finish(handle));
  ::usleep(100'000);
}

/// Of this rank so far: calls of CUDA and NCCL, rounds and messages.
Counts counts() {
  Counts result;
  std::string rest = kCounted;
  while (!rest.empty()) {
    const std::string name = rest.substr(0, rest.find(','));
    result[name] = calls_of(name.c_str());
    rest.erase(0, name.size() + 1);
  }
  const auto statistics = nlohmann::json::parse(runjob_statistics_json());
  for (const char* name : {"control_messages", "rounds"}) result[name] = statistics.at(name);
  return result;
}

/// The numbers that `kSteps` steps add to the counts, once the step is known to all ranks. No rank comes back before all have
/// counted: the first one to leave the job would cause a control message.
template <class Step>
Counts steady_counts(Step step) {
  for (int i = 0; i < 10; ++i) step();
  const Counts before = counts();
  for (int i = 0; i < kSteps; ++i) step();
  Counts added = counts();
  check(small_allreduce("all have counted"));
  for (auto& [name, count] : added) count -= before.at(name);
  return added;
}

void require_counts(const Counts& found, const Counts& expected) {
  for (const auto& [name, count] : expected)
    require(found.at(name) == count, name + ": " + std::to_string(found.at(name)) + ", not " + std::to_string(count));
}

/// The runtime's stream waits for the caller's in each step, and the caller's for the runtime's unless the GPU is done
/// by then.
void require_waits(const Counts& found) {
  const std::int64_t waits = found.at("stream_wait");
  require(kSteps <= waits && waits <= 2 * kSteps, "stream_wait: " + std::to_string(waits));
}

}  // namespace

TEST_CASE("a steady step on a GPU makes nothing and sends nothing but its round, over the stand-ins",
          "[runtime][multiproc][stand-in]") {
  const int size = GENERATE(1, 2, 4, 8);
  const auto step = [&](int rank) {
    const UserStream stream(rank);
    const std::int64_t extent = 2;
    const GpuTensor<float> tensor(stream, {0, 0});
    const runjob_tensor one{tensor.get(), tensor.get(), 0, &extent, 1, RUNJOB_FLOAT32};
    fill_pool(stream, one);
    const Counts found = steady_counts([&] {
      run_on(stream, gpu_operation("x", RUNJOB_ALLREDUCE, one, stream));
      stream.synchronize();
    });
    require_counts(found, {{"event_create", 0},
                           {"stream_create", 0},
                           {"memory_allocate", 0},
                           {"host_allocate", 0},
                           {"event_record", 2 * kSteps},
                           {"ncclAllReduce", kSteps},
                           {"ncclGroupEnd", 0},
                           {"control_messages", 0},
                           {"rounds", kSteps}});
    require_waits(found);
  };
  on_ranks(size, step, {{"RUNJOB_STAND_IN_COUNT", kCounted}});
}

TEST_CASE("the tensors of a group are one operation of NCCL, and each has its own sum, over the stand-ins",
          "[runtime][multiproc][stand-in]") {
  on_ranks(
      2,
      [&](int rank) {
        constexpr int kTensors = 12;
        const UserStream stream(rank);
        std::vector<std::int64_t> extents;
        std::vector<std::unique_ptr<GpuTensor<float>>> tensors;
        std::vector<runjob_tensor> described;
        for (int i = 0; i < kTensors; ++i) extents.push_back(1 + 100 * i);
        for (int i = 0; i < kTensors; ++i) {
          const auto count = static_cast<std::size_t>(extents[static_cast<std::size_t>(i)]);
          tensors.push_back(std::make_unique<GpuTensor<float>>(stream, Floats(count, static_cast<float>(i + rank))));
          void* const memory = tensors.back()->get();
          described.push_back({memory, memory, 0, &extents[static_cast<std::size_t>(i)], 1, RUNJOB_FLOAT32});
        }
        runjob_operation group = gpu_operation("group", RUNJOB_ALLREDUCE, described.front(), stream);
        group.count = kTensors;
        run_on(stream, group);
        for (int i = 0; i < kTensors; ++i) {
          const auto place = static_cast<std::size_t>(i);
          const Floats expected(static_cast<std::size_t>(extents[place]), static_cast<float>(2 * i + 1));
          require(tensors[place]->values() == expected, "the sum of tensor " + std::to_string(i));
        }
        fill_pool(stream, described.front());
        const Counts found = steady_counts([&] {
          run_on(stream, group);
          stream.synchronize();
        });
        require_counts(found, {{"event_create", 0},
                               {"event_record", 2 * kSteps},
                               {"ncclAllReduce", kTensors * kSteps},
                               {"ncclGroupEnd", kSteps}});
        require_waits(found);
      },
      {{"RUNJOB_STAND_IN_COUNT", kCounted}});
}

TEST_CASE("operations that are agreed on together are launched together, unless fusion is off, over the stand-ins",
          "[runtime][multiproc][stand-in]") {
  const std::string threshold = GENERATE("1MB", "0");
  on_ranks(
      2,
      [&](int rank) {
        constexpr int kOperations = 8;
        const UserStream stream(rank);
        const std::int64_t extent = 3;
        std::vector<std::unique_ptr<GpuTensor<float>>> tensors;
        const auto step = [&] {
          tensors.clear();
          std::vector<runjob_handle> handles;
          for (int i = 0; i < kOperations; ++i) {
            tensors.push_back(
                std::make_unique<GpuTensor<float>>(stream, Floats(3, static_cast<float>(i * (rank + 1)))));
            const runjob_tensor one{tensors.back()->get(), tensors.back()->get(), 0, &extent, 1, RUNJOB_FLOAT32};
            handles.push_back(start(gpu_operation(("x" + std::to_string(i)).c_str(), RUNJOB_ALLREDUCE, one, stream)));
          }
          for (const runjob_handle handle : handles) {
            check(runjob_wait_on_stream(handle, stream.get(), -1));
            runjob_release(handle);
          }
          for (int i = 0; i < kOperations; ++i)
            require(tensors[static_cast<std::size_t>(i)]->values() == Floats(3, static_cast<float>(3 * i)), "a sum");
        };
        const Counts found = steady_counts(step);
        require_counts(found, {{"ncclAllReduce", kOperations * kSteps}});
        require((found.at("ncclGroupEnd") > 0) == (threshold != "0"), "launches as one");
      },
      {{"RUNJOB_STAND_IN_COUNT", kCounted}, {"RUNJOB_FUSION_THRESHOLD", threshold}});
}
