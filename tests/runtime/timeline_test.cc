#include "runtime/timeline/timeline.hpp"

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <runjob/runjob.h>
#include <thread>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/runtime/rank_processes.hpp"

using namespace runjob::runtime;

namespace {

struct TemporaryFile {
  std::string path = (std::filesystem::temp_directory_path() / "runjob-timeline-XXXXXX").string();
  TemporaryFile() { ::close(::mkstemp(path.data())); }
  ~TemporaryFile() { std::filesystem::remove(path); }
};

nlohmann::json parse(const std::string& path) {
  std::ifstream stream(path);
  return nlohmann::json::parse(stream);
}

/// "B NAME" and "E", in order, of the process with this pid; ticks as "X rank".
std::vector<std::string> events_of(const nlohmann::json& trace, int pid) {
  std::vector<std::string> result;
  for (const auto& event : trace) {
    if (event.value("pid", -1) != pid || event.at("ph") == "M") continue;
    const std::string name = event.value("name", "");
    result.push_back(event.at("ph").get<std::string>() + (name.empty() ? "" : " " + name));
  }
  return result;
}

}  // namespace

TEST_CASE("a tensor's life is recorded with Horovod's names and layout", "[runtime][unit]") {
  const TemporaryFile file;
  {
    Timeline timeline(file.path, "RUNJOB_TIMELINE", true);
    timeline.rank_ready("grad", Kind::kAllreduce, 1);
    timeline.rank_ready("grad", Kind::kAllreduce, 0);
    timeline.begin("grad", Kind::kAllreduce);
    timeline.begin_activity("grad", "QUEUE");
    timeline.end_activity("grad");
    timeline.begin_activity("grad", "GLOO_ALLREDUCE");
    timeline.end("grad", DType::kFloat32, {17, 17});
    timeline.mark_cycle();
  }
  const auto trace = parse(file.path);
  CHECK(trace.at(0).at("args").contains("start_time_since_epoch_in_micros"));
  CHECK(trace.at(2).at("args").at("name") == "grad");
  CHECK(trace.at(3).at("args").at("sort_index") == 1);
  CHECK(events_of(trace, 1) == std::vector<std::string>{"B NEGOTIATE_ALLREDUCE", "X 1", "X 0", "E", "B ALLREDUCE",
                                                        "B QUEUE", "E", "B GLOO_ALLREDUCE", "E", "E"});
  const auto& last = trace.at(trace.size() - 2);
  CHECK(last.at("args").at("dtype") == "float32");
  CHECK(last.at("args").at("shape") == "[17, 17]");
  CHECK(trace.back().at("name") == "CYCLE_START");
  CHECK(trace.back().at("s") == "g");
}

TEST_CASE("a rank that is ahead does not mix two lives of a tensor", "[runtime][unit]") {
  const TemporaryFile file;
  {
    Timeline timeline(file.path, "RUNJOB_TIMELINE", false);
    timeline.rank_ready("x", Kind::kBroadcast, 0);
    timeline.begin("x", Kind::kBroadcast);
    timeline.rank_ready("x", Kind::kBroadcast, 1);
    timeline.end("x", DType::kUint8, {});
    timeline.reject("x");
    timeline.end("x", DType::kUint8, {});
    timeline.mark_cycle();
  }
  CHECK(events_of(parse(file.path), 1) == std::vector<std::string>{"B NEGOTIATE_BROADCAST", "X 0", "E", "B BROADCAST",
                                                                   "E", "B NEGOTIATE_BROADCAST", "X 1", "E"});
}

TEST_CASE("names with quotes and many threads leave a valid trace", "[runtime][unit]") {
  const TemporaryFile file;
  {
    Timeline timeline(file.path, "RUNJOB_TIMELINE", false);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&timeline, t] {
        for (int i = 0; i < 500; ++i) {
          const std::string name = "\"\\\n" + std::to_string(t);
          timeline.rank_ready(name, Kind::kAllgather, 0);
          timeline.begin(name, Kind::kAllgather);
          timeline.end(name, DType::kBool, {1});
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  const auto trace = parse(file.path);
  for (int pid = 1; pid <= 4; ++pid) CHECK(events_of(trace, pid).size() == 5 * 500);
}

TEST_CASE("rank 0's trace of a job is valid after it was killed", "[runtime][multiproc]") {
  const TemporaryFile file;
  RankOptions options = on_one_host(2);
  options.environment = {{"RUNJOB_TIMELINE", file.path}};
  const auto outcomes = run_ranks(options, [](int rank) {
    if (runjob_init() != RUNJOB_OK) return outcome_of(RUNJOB_INTERNAL);
    std::vector<float> values(64);
    const std::int64_t shape[] = {64};
    for (int i = 0; i < 200; ++i) {
      runjob_handle handle = 0;
      const std::string name = "t" + std::to_string(i % 10);
      runjob_code code = runjob_allreduce_async(name.c_str(), values.data(), values.data(), shape, 1, RUNJOB_FLOAT32,
                                                RUNJOB_SUM, 1, 1, 0, &handle);
      if (code == RUNJOB_OK) code = runjob_wait(handle, -1);
      if (code != RUNJOB_OK) return outcome_of(code);
      runjob_release(handle);
    }
    if (rank == 0) std::raise(SIGKILL);
    // Stays until rank 0 is gone: a rank that left first would end rank 0's last operation with an error.
    runjob_handle handle = 0;
    const runjob_code code = runjob_barrier_async("end", 0, &handle);
    return outcome_of(code == RUNJOB_OK ? runjob_wait(handle, -1) : code);
  });
  CHECK(outcomes[0].wait_status == SIGKILL);
  CHECK(outcomes[1].code == RUNJOB_PEER_LOST);
  const auto trace = parse(file.path);
  const auto events = events_of(trace, 1);
  REQUIRE(events.size() > 10);
  CHECK(events[0] == "B NEGOTIATE_ALLREDUCE");
  CHECK(std::count(events.begin(), events.end(), "B SHM_ALLREDUCE") >= 10);
}

TEST_CASE("a timeline that cannot be written fails init on every rank, with the reason", "[runtime][multiproc]") {
  RankOptions options = on_one_host(2);
  options.environment = {{"HOROVOD_TIMELINE", "/nonexistent/t.json"}};
  for (const Outcome& outcome : run_ranks(options, [](int) { return outcome_of(runjob_init()); })) {
    CHECK(outcome.code == RUNJOB_UNAVAILABLE);
    CHECK_THAT(outcome.message, ContainsSubstring("rank 0 on alpha cannot take part: RUNJOB_TIMELINE: cannot create"));
  }
}
