#include "runtime/collectives/nccl/staged_run.hpp"

#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "tests/runtime/collectives/nccl/gpu_ranks.hpp"

using namespace runjob::runtime;
using runjob::Errc;
using runjob::Status;

namespace {

using Ints = std::vector<std::int32_t>;
constexpr std::size_t kPiece = 1024, kPieces = 7;  ///< values of a piece; the last one is shorter

/// The host's collectives of two ranks, of which the other one has the same values: a stand-in that doubles. Before it
/// returns from a piece it waits until the next one has arrived from the GPU and the one before has arrived there,
/// which happens only while the collective runs if the copies overlap it.
class DoublingHost : public DataBackend {
 public:
  std::string address() const override { return {}; }
  Status connect(const std::vector<std::string>&) override { return {}; }
  void abort(const Status&) override {}

  Status run(const Call& call) override {
    const std::size_t number = counts.size();
    counts.push_back(call.count);
    auto* const values = static_cast<std::int32_t*>(call.output);
    slots.push_back(values);
    if (fails_at == number) return Status(Errc::kPeerLost, "the other rank is gone");
    for (std::size_t i = 0; i < call.count; ++i) values[i] *= 2;
    if (watched == nullptr) return {};
    const auto second_of = [](std::size_t piece) { return static_cast<std::int32_t>(piece * kPiece + 1); };
    const std::size_t next = number + 1;
    if (next < kPieces && slots.size() >= 3)  // a place is known from its first use on
      overlaps_copy_out += reaches(slots[next % 3] + 1, second_of(next));
    if (number > 0) overlaps_copy_in += reaches(watched + (number - 1) * kPiece + 1, 2 * second_of(number - 1));
    return {};
  }

  std::vector<std::size_t> counts;  ///< of each piece
  std::vector<std::int32_t*> slots;
  const std::int32_t* watched = nullptr;  ///< the tensor, where the stand-in reaches it
  std::size_t fails_at = 1000;
  int overlaps_copy_out = 0, overlaps_copy_in = 0;

 private:
  /// Waits for a value that a copy writes; 0 when it does not come.
  static int reaches(const std::int32_t* place, std::int32_t value) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (__atomic_load_n(place, __ATOMIC_ACQUIRE) != value) {
      if (std::chrono::steady_clock::now() > deadline) return 0;
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    return 1;
  }
};

Ints ascending(std::size_t count, int factor = 1) {
  Ints values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<std::int32_t>(i) * factor;
  return values;
}

Call sum_in_place(const GpuTensor<std::int32_t>& tensor, std::size_t count) {
  Call call;
  call.dtype = DType::kInt32;
  call.memory.kind = MemoryKind::kDevice;
  call.input = call.output = tensor.get();
  call.count = count;
  return call;
}

/// In a process of its own, because the stand-in makes threads, and other tests fork.
template <class Body>
void alone(Body body) {
  const Outcome outcome = run_alone([&] {
    body();
    return Outcome();
  });
  INFO(outcome.message);
  CHECK(outcome.ok());
}

/// A tensor on a GPU, and the way through the host.
struct Staging {
  explicit Staging(std::size_t count) : tensor(stream, ascending(count)) {}
  Status sum(std::size_t count) {
    const cuda::CurrentGpu current(stream.gpu());
    return run.run(sum_in_place(tensor, count));
  }

  const UserStream stream{0};
  DoublingHost host;
  nccl::StagedRun run{host, stream.gpu(), stream.get(), 0, [] { return false; }, kPiece * sizeof(std::int32_t)};
  const GpuTensor<std::int32_t> tensor;
};

}  // namespace

TEST_CASE("a collective of the host overlaps the copies of the pieces beside its own, over the stand-ins",
          "[runtime][stand-in]") {
  alone([] {
    constexpr std::size_t kCount = kPieces * kPiece - 24;
    Staging staging(kCount);
    staging.host.watched =
        static_cast<const std::int32_t*>(stand_in_gpu().view(staging.tensor.get(), staging.tensor.bytes()));
    staging.sum(kCount).throw_if_failed();
    require(staging.tensor.values() == ascending(kCount, 2), "the sum");
    const std::vector<std::size_t> counts{kPiece, kPiece, kPiece, kPiece, kPiece, kPiece, kPiece - 24};
    require(staging.host.counts == counts, "the pieces");
    require(staging.host.overlaps_copy_out == kPieces - 3, "copies from the GPU, of all pieces after the first three");
    require(staging.host.overlaps_copy_in == kPieces - 1, "copies to the GPU, of all pieces but the last");
  });
}

TEST_CASE("calls through the host that follow each other use the same places, over the stand-ins",
          "[runtime][stand-in]") {
  alone([] {
    Staging staging(2 * kPiece);
    for (int turn = 0; turn < 5; ++turn) staging.sum(2 * kPiece).throw_if_failed();
    require(staging.tensor.values() == ascending(2 * kPiece, 32), "the sum of sums");
    const std::vector<std::int32_t*>& slots = staging.host.slots;
    require(slots[3] == slots[0] && slots[4] == slots[1] && slots[5] == slots[2], "three places");
  });
}

TEST_CASE("a failure of the host ends a call between two pieces, over the stand-ins", "[runtime][stand-in]") {
  alone([] {
    Staging staging(3 * kPiece);
    staging.host.fails_at = 1;
    require(staging.sum(3 * kPiece).code() == Errc::kPeerLost, "the host's failure");
    require(staging.host.counts.size() == 2, "no more pieces");
  });
}

TEST_CASE("an event that was given back while its stream is busy delays no copies, over the stand-ins",
          "[runtime][stand-in]") {
  alone([] {
    static std::atomic<bool> is_free{false};
    const UserStream busy(0);
    Staging staging(2 * kPiece);
    staging.stream.synchronize();
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    nccl::StagedRun run(
        staging.host, busy.gpu(), staging.stream.get(), 0, [&] { return std::chrono::steady_clock::now() > deadline; },
        kPiece * sizeof(std::int32_t));
    const cuda::CurrentGpu current(busy.gpu());
    stand_in_gpu().enqueue(
        busy.get(),
        [](void*) {
          while (!is_free) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        },
        nullptr);
    std::vector<cuda::Event> events;
    for (int i = 0; i < 10; ++i) {
      events.push_back(busy.gpu().take_event());
      cuda::check(cuda::driver().event_record(events.back(), busy.get()), "recording");
    }
    for (const cuda::Event event : events) busy.gpu().give_back(event);
    run.run(sum_in_place(staging.tensor, 2 * kPiece)).throw_if_failed();
    require(staging.tensor.values() == ascending(2 * kPiece, 2), "the sum");
    is_free = true;
    busy.synchronize();
  });
}
