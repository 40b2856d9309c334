#include "runtime/timeline/timeline.hpp"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <runjob/runjob.h>
#include <thread>

#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/runtime/rank_processes.hpp"
#include "tests/runtime/temporary_trace.hpp"

using namespace runjob::runtime;

namespace {

const std::vector<std::string> kRanks = {"rank 0 on a", "rank 1 on b"};

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

/// What the trace calls its processes, in order.
std::vector<std::string> process_names(const nlohmann::json& trace) {
  std::vector<std::string> names;
  for (const auto& event : trace) {
    if (event.value("name", "") == "process_name" && event.at("args").contains("name"))
      names.push_back(event.at("args").at("name"));
  }
  return names;
}

/// "b NAME" and "e NAME", in order of time, of a rank's track.
std::vector<std::string> track_of(const nlohmann::json& trace, const std::string& rank) {
  int pid = -1;
  for (const auto& event : trace) {
    if (event.value("name", "") == "process_name" && event.at("args").value("name", "") == rank) pid = event.at("pid");
  }
  std::vector<std::pair<double, std::string>> events;
  for (const auto& event : trace) {
    if (event.value("pid", -1) != pid || event.at("ph") == "M") continue;
    events.emplace_back(event.at("ts"), event.at("ph").get<std::string>() + " " + event.at("name").get<std::string>());
  }
  std::stable_sort(events.begin(), events.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> result;
  for (auto& [time, text] : events) result.push_back(std::move(text));
  return result;
}

/// Sums over the ranks, in place.
runjob_code allreduce(const std::string& name, std::vector<float>& values) {
  const std::int64_t shape[] = {static_cast<std::int64_t>(values.size())};
  runjob_handle handle = 0;
  return runjob_allreduce(name.c_str(), values.data(), values.data(), shape, 1, RUNJOB_FLOAT32, RUNJOB_SUM, 1, 1, 0, -1,
                          &handle);
}

}  // namespace

TEST_CASE("a tensor's life is recorded with Horovod's names and layout", "[runtime][unit]") {
  const TemporaryTrace file;
  {
    Timeline timeline(0, kRanks);
    timeline.start({.path = file.path, .what = "RUNJOB_TIMELINE", .mark_cycles = true});
    timeline.rank_ready("grad", Kind::kAllreduce, 1);
    timeline.rank_ready("grad", Kind::kAllreduce, 0);
    timeline.begin("grad", Kind::kAllreduce);
    timeline.begin_activity("grad", "QUEUE");
    timeline.end_activity("grad");
    timeline.begin_activity("grad", "GLOO_ALLREDUCE");
    timeline.end("grad", DType::kFloat32, {17, 17});
    timeline.mark_cycle();
  }
  const auto trace = parse_trace(file.path);
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
  const TemporaryTrace file;
  {
    Timeline timeline(0, kRanks);
    timeline.start({.path = file.path, .what = "RUNJOB_TIMELINE"});
    timeline.rank_ready("x", Kind::kBroadcast, 0);
    timeline.begin("x", Kind::kBroadcast);
    timeline.rank_ready("x", Kind::kBroadcast, 1);
    timeline.end("x", DType::kUint8, {});
    timeline.reject("x");
    timeline.end("x", DType::kUint8, {});
    timeline.mark_cycle();
  }
  CHECK(events_of(parse_trace(file.path), 1) == std::vector<std::string>{"B NEGOTIATE_BROADCAST", "X 0", "E",
                                                                         "B BROADCAST", "E", "B NEGOTIATE_BROADCAST",
                                                                         "X 1", "E"});
}

TEST_CASE("names with quotes and many threads leave a valid trace", "[runtime][unit]") {
  const TemporaryTrace file;
  {
    Timeline timeline(0, kRanks);
    timeline.start({.path = file.path, .what = "RUNJOB_TIMELINE"});
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
  const auto trace = parse_trace(file.path);
  for (int pid = 1; pid <= 4; ++pid) CHECK(events_of(trace, pid).size() == 5 * 500);
}

TEST_CASE("off, it records nothing; a second start begins a new file", "[runtime][unit]") {
  const TemporaryTrace first, second;
  Timeline timeline(0, kRanks);
  const auto run = [&timeline] {
    timeline.begin("x", Kind::kAllgather);
    timeline.end("x", DType::kBool, {1});
  };
  run();
  timeline.start({.path = first.path, .what = "test"});
  run();
  timeline.start({.path = second.path, .what = "test"});
  run();
  run();
  timeline.stop();
  run();
  CHECK(events_of(parse_trace(first.path), 1) == std::vector<std::string>{"B ALLGATHER", "E"});
  CHECK(events_of(parse_trace(second.path), 1).size() == 4);
  CHECK_THROWS_WITH(timeline.start({.path = "/nonexistent/t.json", .what = "test"}),
                    ContainsSubstring("test: cannot create"));
}

TEST_CASE("every rank has a track, with times of one clock", "[runtime][unit]") {
  const TemporaryTrace file;
  Timeline first(0, kRanks), second(1, kRanks);
  int woken = 0;
  second.on_messages([&woken] { ++woken; });
  first.start({.path = file.path, .what = "test", .all_ranks = true});
  second.start({.path = "", .what = "test", .all_ranks = true});
  for (Timeline* timeline : {&first, &second}) {
    timeline->submitted("x", Kind::kAllreduce);
    timeline->begin("x", Kind::kAllreduce);
    timeline->begin_activity("x", "SHM_ALLREDUCE", "pipeline");
    timeline->end("x", DType::kFloat32, {2});
  }
  second.stop();
  for (const char* text : {"{}]}", "]", "5", "{\"a\": \"\x1b[2J\"}", "{},", ",{}", " ", "{\"ph\": \"B\"", "\"x\""})
    first.take_records("rank 1 on b", text);
  first.take_records("rank 1 on b", std::string(200'000, '['));
  CHECK(woken >= 1);
  for (auto messages = second.take_messages(); !messages.empty(); messages = second.take_messages()) {
    for (TraceShipment::Message& message : messages) {
      if (message.asks_clock) {
        second.clock_answered(message.asked, first.clock());
      } else {
        first.take_records("rank 1 on b", std::move(message.records));
      }
    }
  }
  first.stop();
  const auto trace = parse_trace(file.path);
  for (int rank = 0; rank < 2; ++rank) {
    CHECK(track_of(trace, kRanks.at(static_cast<std::size_t>(rank))) ==
          std::vector<std::string>{"b NEGOTIATE_ALLREDUCE", "e NEGOTIATE_ALLREDUCE", "b ALLREDUCE", "b SHM_ALLREDUCE",
                                   "e SHM_ALLREDUCE", "e ALLREDUCE"});
  }
}

TEST_CASE("rank 0's trace of a job is valid after it was killed", "[runtime][multiproc]") {
  const TemporaryTrace file;
  RankOptions options = on_one_host(2);
  options.environment = {{"RUNJOB_TIMELINE", file.path}};
  const auto outcomes = run_ranks(options, [&file](int rank) {
    if (runjob_init() != RUNJOB_OK) return outcome_of(RUNJOB_INTERNAL);
    std::vector<float> values(64);
    for (int i = 0;; ++i) {
      float goes_on = std::filesystem::file_size(file.path) < 100'000 ? 1.0f : 0.0f;
      values[0] = goes_on;
      const runjob_code code = allreduce("t" + std::to_string(i % 10), values);
      if (code != RUNJOB_OK) return outcome_of(code);
      if (values[0] < 2) break;  // both have seen that the file is long enough, or that the other one has
    }
    if (rank == 0) std::raise(SIGKILL);
    // Stays until rank 0 is gone: a rank that left first would end rank 0's last operation with an error.
    runjob_handle handle = 0;
    const runjob_code code = runjob_barrier_async("end", 0, &handle);
    return outcome_of(code == RUNJOB_OK ? runjob_wait(handle, -1) : code);
  });
  CHECK(outcomes[0].wait_status == SIGKILL);
  CHECK(outcomes[1].code == RUNJOB_PEER_LOST);
  const auto trace = parse_trace(file.path);
  const auto events = events_of(trace, 1);
  REQUIRE(events.size() > 10);
  CHECK(events[0] == "B NEGOTIATE_ALLREDUCE");
  CHECK(std::count(events.begin(), events.end(), "B SHM_ALLREDUCE") >= 10);
}

TEST_CASE("a job's trace has every rank's track, also of one that has joined", "[runtime][multiproc]") {
  const bool shared_memory = GENERATE(true, false);
  const TemporaryTrace file;
  RankOptions options = on_one_host(3);
  options.environment = {{"RUNJOB_TIMELINE", file.path}, {"RUNJOB_TIMELINE_ALL_RANKS", "1"}};
  options.environment["RUNJOB_SHARED_MEMORY"] = shared_memory ? "1" : "0";
  const auto outcomes = run_ranks(options, [](int rank) {
    if (runjob_init() != RUNJOB_OK) return outcome_of(RUNJOB_INTERNAL);
    std::vector<float> values(100'000);
    for (int i = 0; i < 5; ++i) {
      if (rank == 2 && i == 3) break;
      if (const runjob_code code = allreduce("grad", values); code != RUNJOB_OK) return outcome_of(code);
    }
    runjob_handle handle = 0;
    if (const runjob_code code = runjob_join(-1, &handle); code != RUNJOB_OK) return outcome_of(code);
    return outcome_of(runjob_shutdown());
  });
  for (const Outcome& outcome : outcomes) CHECK(outcome.message == "");
  const auto trace = parse_trace(file.path);
  for (const char* rank : {"rank 0 on alpha", "rank 1 on alpha", "rank 2 on alpha"}) {
    const auto track = track_of(trace, rank);
    CHECK(std::count(track.begin(), track.end(), "b ALLREDUCE") == 5);
    CHECK(std::count(track.begin(), track.end(), "e ALLREDUCE") == 5);
    const bool has_joined_early = std::string(rank).starts_with("rank 2");
    CHECK(std::count(track.begin(), track.end(), "e NEGOTIATE_ALLREDUCE") == (has_joined_early ? 3 : 5));
  }
  const auto tensor = events_of(trace, 1);
  CHECK(std::count(tensor.begin(), tensor.end(), "B ALLREDUCE") == 5);
  CHECK(std::count_if(tensor.begin(), tensor.end(), [](const std::string& event) { return event[0] == 'B'; }) ==
        std::count(tensor.begin(), tensor.end(), "E"));
}

TEST_CASE("a job of one operation has the end of it in every rank's track", "[runtime][multiproc]") {
  const TemporaryTrace file;
  RankOptions options = on_one_host(3);
  options.environment = {{"RUNJOB_TIMELINE", file.path}, {"RUNJOB_TIMELINE_ALL_RANKS", "1"}};
  for (int job = 0; job < 10; ++job) {  // the ranks leave while others note the end
    const auto outcomes = run_ranks(options, [](int) {
      if (runjob_init() != RUNJOB_OK) return outcome_of(RUNJOB_INTERNAL);
      std::vector<float> values(4);
      if (const runjob_code code = allreduce("grad", values); code != RUNJOB_OK) return outcome_of(code);
      return outcome_of(runjob_shutdown());
    });
    for (const Outcome& outcome : outcomes) CHECK(outcome.message == "");
    const auto trace = parse_trace(file.path);
    for (const char* rank : {"rank 0 on alpha", "rank 1 on alpha", "rank 2 on alpha"}) {
      const auto track = track_of(trace, rank);
      INFO("job " << job << ", " << rank);
      CHECK(std::count(track.begin(), track.end(), "e ALLREDUCE") == 1);
      CHECK(std::count(track.begin(), track.end(), "b ALLREDUCE") == 1);
    }
  }
}

TEST_CASE("a timeline is started and stopped while the job runs", "[runtime][multiproc]") {
  const TemporaryTrace file;
  const auto outcomes = run_ranks(on_one_host(2), [&file](int rank) {
    if (runjob_start_timeline(file.path.c_str(), 0, 0) != RUNJOB_NOT_INITIALIZED) return outcome_of(RUNJOB_INTERNAL);
    if (runjob_init() != RUNJOB_OK) return outcome_of(RUNJOB_INTERNAL);
    std::vector<float> values(4);
    runjob_code code = allreduce("before", values);
    if (code == RUNJOB_OK && rank == 0) code = runjob_start_timeline(file.path.c_str(), 1, 0);
    if (code == RUNJOB_OK) code = allreduce("during", values);
    if (code == RUNJOB_OK) code = runjob_stop_timeline();
    if (code == RUNJOB_OK) code = allreduce("after", values);
    if (code != RUNJOB_OK) return outcome_of(code);
    if (runjob_start_timeline("/nonexistent/t.json", 0, 0) != (rank == 0 ? RUNJOB_INVALID_ARGUMENT : RUNJOB_OK))
      return outcome_of(RUNJOB_INTERNAL);
    return outcome_of(runjob_shutdown());
  });
  for (const Outcome& outcome : outcomes) CHECK(outcome.message == "");
  const auto trace = parse_trace(file.path);
  const auto names = process_names(trace);
  CHECK(names == std::vector<std::string>{"during"});
  CHECK(std::count_if(trace.begin(), trace.end(), [](const auto& e) { return e.value("name", "") == "CYCLE_START"; }) >=
        1);
}

TEST_CASE("operations of process sets have tracks of their own, with ranks of the job", "[runtime][multiproc]") {
  const TemporaryTrace file;
  RankOptions options = on_one_host(3);
  options.environment = {{"RUNJOB_TIMELINE", file.path}, {"RUNJOB_DYNAMIC_PROCESS_SETS", "1"}};
  const auto outcomes = run_ranks(options, [](int rank) {
    runjob_code code = runjob_init();
    const std::int32_t ranks[] = {0, 2}, one = 1;
    std::int32_t set = 0;
    if (code == RUNJOB_OK) code = runjob_process_set_add(ranks, 2, &set);
    runjob_handle handle = 0;
    if (code == RUNJOB_OK && rank != one) code = runjob_barrier("x", set, -1, &handle);
    if (code == RUNJOB_OK) code = runjob_barrier("x", 0, -1, &handle);
    return outcome_of(code == RUNJOB_OK ? runjob_shutdown() : code);
  });
  for (const Outcome& outcome : outcomes) CHECK(outcome.ok());
  const auto trace = parse_trace(file.path);
  std::map<std::string, int> pids;
  for (const auto& event : trace) {
    if (event.value("name", "") == "process_name" && event["args"].contains("name"))
      pids[event["args"]["name"]] = event["pid"];
  }
  REQUIRE(pids.count("x") == 1);
  REQUIRE(pids.count("x (process set 1)") == 1);
  const auto events = events_of(trace, pids["x (process set 1)"]);
  CHECK(std::count(events.begin(), events.end(), "X 2") == 1);
  CHECK(std::count(events.begin(), events.end(), "X 1") == 0);
}

TEST_CASE("a timeline that cannot be written fails init on every rank, with the reason", "[runtime][multiproc]") {
  RankOptions options = on_one_host(2);
  options.environment = {{"HOROVOD_TIMELINE", "/nonexistent/t.json"}};
  for (const Outcome& outcome : run_ranks(options, [](int) { return outcome_of(runjob_init()); })) {
    CHECK(outcome.code == RUNJOB_UNAVAILABLE);
    CHECK_THAT(outcome.message, ContainsSubstring("rank 0 on alpha cannot take part: RUNJOB_TIMELINE: cannot create"));
  }
}
