#include <array>
#include <cstring>
#include <future>
#include <sys/socket.h>

#include "base/error.hpp"
#include "runtime/collectives/backend_set.hpp"
#include "runtime/collectives/shm/shm_backend.hpp"
#include "runtime/engine/engine.hpp"
#include "tests/catch.hpp"
#include "tests/runtime/device_stand_in.hpp"

using namespace runjob::runtime;
using runjob::Errc;
using runjob::Error;
using runjob::Status;

namespace {

constexpr std::chrono::seconds kLong{60};
using Floats = std::vector<float>;

std::unique_ptr<ShmBackend> shared_memory(int rank) {
  return std::make_unique<ShmBackend>(MeshOptions{rank, 2, "", kLong, kLong}, "");
}

/// One rank with a device: an engine over shared memory and the stand-in's backend.
struct Rank {
  std::shared_ptr<StandInMemory> memory = std::make_shared<StandInMemory>();
  StandInBackend* device = nullptr;  ///< the engine's, once it has made it
  bool has_driver = true;
  std::string address;
  std::unique_ptr<Engine> engine;

  Rank(int rank, std::unique_ptr<ControlPlane> control) {
    EngineParts parts;
    parts.rank = rank;
    parts.members = std::vector<std::string>{"a", "a"};
    parts.control = std::move(control);
    const auto make_device = [this](DataBackend& host, const BackendSet::OnFailure&) {
      if (!has_driver) throw Error(Errc::kUnavailable, "there is no driver");
      auto made = std::make_unique<StandInBackend>(memory, host);
      device = made.get();
      return made;
    };
    parts.backends = std::make_unique<BackendSet>(shared_memory(rank), make_device);
    address = parts.backends->host().address();
    engine = std::make_unique<Engine>(std::move(parts));
  }

  void* to_device(const Floats& values) const {
    void* buffer = memory->allocate(values.size() * sizeof(float));
    std::memcpy(memory->view(buffer), values.data(), values.size() * sizeof(float));
    return buffer;
  }
  Floats from_device(const void* buffer, std::size_t count) const {
    Floats values(count);
    std::memcpy(values.data(), memory->view(buffer), count * sizeof(float));
    return values;
  }
};

/// Two ranks, as threads of this process.
struct Job {
  Rank zero, one;

  Job() : Job(ends()) {}
  Rank& rank(int number) { return number == 0 ? zero : one; }

 private:
  static std::array<int, 2> ends() {
    std::array<int, 2> result{};
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, result.data()) == 0);
    return result;
  }
  static std::unique_ptr<ControlPlane> coordinator(int end) {
    std::vector<ControlChannel> channels(1);
    channels.emplace_back(runjob::UniqueFd(end));
    return std::make_unique<Coordinator>(std::vector<std::string>{"a", "a"}, std::move(channels), nullptr);
  }
  explicit Job(std::array<int, 2> ends)
      : zero(0, coordinator(ends[0])),
        one(1, std::make_unique<Member>(ControlChannel(runjob::UniqueFd(ends[1])), "rank 0 on a")) {
    const std::vector<std::string> addresses{zero.address, one.address};
    auto connected = std::async(std::launch::async, [&] { return zero.engine->connect(addresses); });
    REQUIRE(one.engine->connect(addresses).ok());
    REQUIRE(connected.get().ok());
  }
};

Submission on_device(const std::string& name, Signature signature, const void* input, void* output) {
  signature.dtype = DType::kFloat32;
  signature.memory = MemoryKind::kDevice;
  return {name, std::move(signature), input, output, 0, Device{3, nullptr}};
}

Status outcome(const std::shared_ptr<Completion>& completion) {
  return completion->wait(std::nullopt).value();
}

/// Both ranks submit; returns their completions, finished.
template <class Make>
std::array<std::shared_ptr<Completion>, 2> on_both(Job& job, Make make) {
  std::array<std::shared_ptr<Completion>, 2> done{job.zero.engine->submit(make(job.zero, 0)),
                                                  job.one.engine->submit(make(job.one, 1))};
  for (const auto& each : done) {
    const Status status = outcome(each);
    INFO(status.message());
    REQUIRE(status.ok());
  }
  return done;
}

}  // namespace

TEST_CASE("reductions and broadcasts of memory that the host cannot touch", "[runtime][unit][stand-in]") {
  Job job;
  std::array<void*, 2> in{}, out{};
  for (int rank = 0; rank < 2; ++rank) {
    in[rank] = job.rank(rank).to_device({1.0f + static_cast<float>(rank), 10});
    out[rank] = job.rank(rank).to_device({0, 0});
  }
  for (int turn = 0; turn < 3; ++turn) {  // from the second time on the operation is known to all ranks
    on_both(job, [&](Rank&, int rank) {
      return on_device("sum", {.kind = Kind::kAllreduce, .shape = {2}}, in[rank], out[rank]);
    });
    CHECK(job.zero.from_device(out[0], 2) == Floats{3, 20});
    CHECK(job.one.from_device(out[1], 2) == Floats{3, 20});
  }
  on_both(job, [&](Rank&, int rank) {
    return on_device("all", {.kind = Kind::kBroadcast, .root = 1, .shape = {2}}, in[rank], in[rank]);
  });
  CHECK(job.zero.from_device(in[0], 2) == Floats{2, 10});
  CHECK(job.zero.device->devices == std::vector<int>(4, 3));
}

TEST_CASE("a blocking operation of device memory runs like any other", "[runtime][unit][stand-in]") {
  Job job;
  auto run = [&](Rank& rank) {
    void* buffer = rank.to_device({4});
    Status status;
    for (int turn = 0; turn < 3 && status.ok(); ++turn) {
      const Submission submission = on_device("x", {.kind = Kind::kAllreduce, .shape = {1}}, buffer, buffer);
      const Engine::Outcome outcome_of_run = rank.engine->run(lent(submission), std::nullopt);
      status = outcome_of_run.status;
      if (outcome_of_run.completion && status.ok()) status = outcome(outcome_of_run.completion);
    }
    return std::pair(status, rank.from_device(buffer, 1));
  };
  auto other = std::async(std::launch::async, [&] { return run(job.one); });
  for (const auto& [status, values] : {run(job.zero), other.get()}) {
    CHECK(status.ok());
    CHECK(values == Floats{32});
  }
}

TEST_CASE("a result that has no buffer of the caller lies in device memory too", "[runtime][unit][stand-in]") {
  Job job;
  const auto gathered = on_both(job, [&](Rank& rank, int number) {
    const Floats values(static_cast<std::size_t>(number) + 1, static_cast<float>(number));
    return on_device("g", {.kind = Kind::kAllgather, .shape = {number + 1}}, rank.to_device(values), nullptr);
  });
  CHECK(gathered[0]->result().shape == Shape{3});
  CHECK(job.zero.from_device(gathered[0]->result().data, 3) == Floats{0, 1, 1});
  const auto exchanged = on_both(job, [&](Rank& rank, int number) {
    const Floats values{static_cast<float>(number), static_cast<float>(number) + 10};
    return on_device("e", {.kind = Kind::kAlltoall, .shape = {2}}, rank.to_device(values), nullptr);
  });
  CHECK(job.one.from_device(exchanged[1]->result().data, 2) == Floats{10, 11});
  const auto scattered = on_both(job, [&](Rank& rank, int) {
    return on_device("s", {.kind = Kind::kReducescatter, .shape = {2}}, rank.to_device({1, 2}), nullptr);
  });
  CHECK(job.one.from_device(scattered[1]->result().data, 1) == Floats{4});
}

TEST_CASE("a group of device tensors is reduced tensor by tensor", "[runtime][unit][stand-in]") {
  Job job;
  std::array<std::array<void*, 2>, 2> buffers{};
  on_both(job, [&](Rank& rank, int number) {
    buffers[number] = {rank.to_device({1, 2}), rank.to_device({3})};
    Submission group = on_device("grouped", {.kind = Kind::kAllreduce}, nullptr, nullptr);
    group.signature.group = {{DType::kFloat32, {2}}, {DType::kFloat32, {1}}};
    for (void* buffer : buffers[number]) group.group.push_back({buffer, buffer, 0});
    return group;
  });
  CHECK(job.one.from_device(buffers[1][0], 2) == Floats{2, 4});
  CHECK(job.one.from_device(buffers[1][1], 1) == Floats{6});
}

TEST_CASE("operations of host and device memory take their own backends side by side", "[runtime][unit][stand-in]") {
  Job job;
  std::array<float, 2> host{1, 2};
  std::array<void*, 2> device{job.zero.to_device({5}), job.one.to_device({6})};
  std::vector<std::shared_ptr<Completion>> pending;
  for (int rank = 0; rank < 2; ++rank) {
    float* value = &host[static_cast<std::size_t>(rank)];
    pending.push_back(job.rank(rank).engine->submit(
        {"h", {.kind = Kind::kAllreduce, .dtype = DType::kFloat32, .shape = {1}}, value, value}));
    pending.push_back(job.rank(rank).engine->submit(
        on_device("d", {.kind = Kind::kAllreduce, .shape = {1}}, device[rank], device[rank])));
  }
  for (const auto& each : pending) CHECK(outcome(each).ok());
  CHECK(host == std::array<float, 2>{3, 3});
  CHECK(job.one.from_device(device[1], 1) == Floats{11});
  CHECK(job.one.device->devices.size() == 1);
}

TEST_CASE("a rank that has joined gives zeros of device memory", "[runtime][unit][stand-in]") {
  Job job;
  const auto joined = job.one.engine->submit(Submission{"<join>", {.kind = Kind::kJoin}, nullptr, nullptr});
  void* buffer = job.zero.to_device({7});
  CHECK(
      outcome(job.zero.engine->submit(on_device("x", {.kind = Kind::kAllreduce, .shape = {1}}, buffer, buffer))).ok());
  CHECK(job.zero.from_device(buffer, 1) == Floats{7});
  CHECK(job.one.memory->allocations() == 1);
  CHECK(outcome(job.zero.engine->submit(Submission{"<join>", {.kind = Kind::kJoin}, nullptr, nullptr})).ok());
  CHECK(outcome(joined).ok());
}

TEST_CASE("ranks that disagree on the memory end with an error that names both", "[runtime][unit][stand-in]") {
  Job job;
  float value = 1;
  void* buffer = job.one.to_device({1});
  const auto zero = job.zero.engine->submit(
      {"x", {.kind = Kind::kAllreduce, .dtype = DType::kFloat32, .shape = {1}}, &value, &value});
  const auto one = job.one.engine->submit(on_device("x", {.kind = Kind::kAllreduce, .shape = {1}}, buffer, buffer));
  for (const auto& each : {zero, one}) {
    CHECK_THAT(outcome(each).message(), ContainsSubstring("the ranks disagree on the memory: host memory"));
    CHECK_THAT(outcome(each).message(), ContainsSubstring("device memory"));
  }
}

TEST_CASE("what a device cannot do, and compression, is refused on all ranks", "[runtime][unit][stand-in]") {
  Job job;
  std::array<void*, 2> buffer{job.zero.to_device({1}), job.one.to_device({1})};
  const auto refusals = [&](const std::string& name, const Signature& signature) {
    std::array<std::shared_ptr<Completion>, 2> done;
    for (int rank = 0; rank < 2; ++rank)
      done[rank] = job.rank(rank).engine->submit(on_device(name, signature, buffer[rank], buffer[rank]));
    CHECK(outcome(done[0]).code() == Errc::kUnavailable);
    CHECK(outcome(done[0]).message() == outcome(done[1]).message());
    return outcome(done[0]).message();
  };
  CHECK_THAT(refusals("p", {.kind = Kind::kAllreduce, .op = ReduceOp::kProduct, .shape = {1}}),
             ContainsSubstring("allreduce 'p': the device has no products"));
  Signature compressed{.kind = Kind::kAllreduce, .shape = {1}};
  compressed.wire = DType::kFloat16;
  CHECK_THAT(refusals("c", compressed), ContainsSubstring("values in device memory cannot be compressed"));
}

TEST_CASE("a rank that has no device refuses its tensors on all ranks, with the reason", "[runtime][unit][stand-in]") {
  Job job;
  job.one.has_driver = false;
  std::array<void*, 2> buffer{job.zero.to_device({1}), job.one.to_device({1})};
  std::array<std::shared_ptr<Completion>, 2> done;
  for (int rank = 0; rank < 2; ++rank) {
    const Signature sum{.kind = Kind::kAllreduce, .shape = {1}};
    done[rank] = job.rank(rank).engine->submit(on_device("x", sum, buffer[rank], buffer[rank]));
  }
  for (const auto& each : done) {
    CHECK(outcome(each).code() == Errc::kUnavailable);
    CHECK_THAT(outcome(each).message(),
               ContainsSubstring("rank 1 on a cannot run it: it has no backend for float32 values in device memory: "
                                 "there is no driver"));
  }
}
