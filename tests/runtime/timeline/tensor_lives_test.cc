#include "runtime/timeline/tensor_lives.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "runtime/timeline/trace_clock.hpp"
#include "tests/catch.hpp"

using namespace runjob::runtime;

namespace {

using Type = TraceRecord::Type;

/// The types of the records, in order, each with its label or the rank of its tick.
struct Recorder {
  std::vector<std::string> records;

  TensorLives lives(int rank, bool has_tracks) {
    return {rank, has_tracks, [this](const TraceRecord& record) { records.push_back(text(record)); }};
  }
  std::vector<std::string> take() { return std::exchange(records, {}); }

  static std::string text(const TraceRecord& record) {
    switch (record.type) {
      case Type::kTensor:
        return "tensor " + record.text;
      case Type::kRank:
        return "rank " + record.text;
      case Type::kBegin:
        return std::string("begin ") + record.label;
      case Type::kTick:
        return "tick " + std::to_string(record.id);
      case Type::kEnd:
        return "end";
      case Type::kResult:
        return "result";
      case Type::kTrackBegin:
        return std::string("track begin ") + record.label;
      case Type::kTrackEnd:
        return std::string("track end ") + record.label;
      case Type::kTrackResult:
        return std::string("track result ") + record.label;
      case Type::kCycle:
      case Type::kText:
        break;
    }
    return "other";
  }
};

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("a tensor's life is a negotiation with a tick per rank, then its operation with activities", "[unit]") {
  Recorder recorder;
  TensorLives lives = recorder.lives(0, false);
  lives.rank_ready("a", Kind::kAllreduce, 1, trace_clock());
  lives.rank_ready("a", Kind::kAllreduce, 0, trace_clock());
  lives.begin("a", Kind::kAllreduce);
  lives.begin_activity("a", "RING", nullptr);
  lives.end("a", DType::kFloat32, {2});
  CHECK(recorder.take() == Texts{"tensor a", "begin NEGOTIATE_ALLREDUCE", "tick 1", "tick 0", "end", "begin ALLREDUCE",
                                 "begin RING", "end", "result"});
}

TEST_CASE("ticks stand at the times of their ranks, and the negotiation begins with the earliest", "[unit]") {
  std::vector<TraceRecord> records;
  TensorLives lives(0, false, [&records](TraceRecord record) { records.push_back(std::move(record)); });
  const std::int64_t now = trace_clock();
  lives.rank_ready("a", Kind::kAllreduce, 0, now + 5000);
  lives.rank_ready("a", Kind::kAllreduce, 1, now + 3000);
  lives.round_ended();
  lives.rank_ready("a", Kind::kAllreduce, 2, now + 9000);
  lives.begin("a", Kind::kAllreduce);
  REQUIRE(records.size() == 7);
  CHECK(records[1].type == Type::kBegin);
  CHECK(records[1].ns == now + 3000);
  CHECK((records[2].id == 1 && records[2].ns == now + 3000));
  CHECK((records[3].id == 0 && records[3].ns == now + 5000));
  CHECK((records[4].id == 2 && records[4].ns == now + 9000));
}

TEST_CASE("a tick from before the end of the tensor's last life stands at that end", "[unit]") {
  std::vector<TraceRecord> records;
  TensorLives lives(0, false, [&records](TraceRecord record) { records.push_back(std::move(record)); });
  const std::int64_t early = trace_clock();
  lives.begin("a", Kind::kAllreduce);
  lives.end("a", DType::kFloat32, {});
  const std::int64_t end = records.back().ns;
  lives.rank_ready("a", Kind::kAllreduce, 1, early);
  lives.round_ended();
  CHECK(records.back().type == Type::kTick);
  CHECK(records.back().ns == end);
}

TEST_CASE("each tensor that an operation moves has a row with the operation's events and its own shape", "[unit]") {
  std::vector<TraceRecord> records;
  TensorLives lives(0, false, [&records](TraceRecord record) { records.push_back(std::move(record)); });
  const std::int64_t came = trace_clock();
  lives.set_tensors("bucket", {{"w", DType::kFloat32, {2, 3}, came}, {"b", DType::kFloat32, {3}, 0}});
  lives.rank_ready("bucket", Kind::kAllreduce, 1, trace_clock());
  lives.begin("bucket", Kind::kAllreduce);
  lives.begin_activity("bucket", "RING", nullptr);
  lives.end("bucket", DType::kFloat32, {9});
  std::map<std::string, int> pids;
  std::map<int, Texts> rows;
  std::map<int, Shape> shapes;
  for (const TraceRecord& record : records) {
    if (record.type == Type::kTensor) {
      pids[record.text] = record.pid;
      continue;
    }
    rows[record.pid].push_back(Recorder::text(record));
    if (record.type == Type::kResult) shapes[record.pid] = record.shape;
  }
  const Texts life = {"begin NEGOTIATE_ALLREDUCE", "tick 1", "end", "begin ALLREDUCE", "begin RING", "end", "result"};
  CHECK(rows[pids.at("bucket")] == life);
  CHECK(rows[pids.at("b")] == life);
  Texts waiting = {"begin WAIT_FOR_OTHER_TENSOR_DATA", "end"};
  waiting.insert(waiting.end(), life.begin(), life.end());
  CHECK(rows[pids.at("w")] == waiting);
  CHECK(shapes[pids.at("w")] == Shape{2, 3});
  CHECK(shapes[pids.at("bucket")] == Shape{9});
}

TEST_CASE("the tensors that an operation moves are not on a rank's track", "[unit]") {
  Recorder recorder;
  TensorLives lives = recorder.lives(0, true);
  lives.set_tensors("bucket", {{"w", DType::kFloat32, {2}, 0}});
  lives.begin("bucket", Kind::kAllreduce);
  lives.end("bucket", DType::kFloat32, {2});
  const Texts records = recorder.take();
  CHECK(std::count(records.begin(), records.end(), "begin ALLREDUCE") == 2);
  CHECK(std::count(records.begin(), records.end(), "track begin ALLREDUCE") == 1);
}

TEST_CASE("a rank that is ahead begins the tensor's next life once the present one has ended", "[unit]") {
  Recorder recorder;
  TensorLives lives = recorder.lives(0, false);
  lives.begin("a", Kind::kBroadcast);
  lives.rank_ready("a", Kind::kBroadcast, 3, trace_clock());
  CHECK(recorder.take() == Texts{"tensor a", "begin BROADCAST"});
  lives.end("a", DType::kFloat32, {});
  CHECK(recorder.take() == Texts{"result", "begin NEGOTIATE_BROADCAST", "tick 3"});
}

TEST_CASE("a rejected tensor ends its negotiation and has no operation", "[unit]") {
  Recorder recorder;
  TensorLives lives = recorder.lives(0, false);
  lives.rank_ready("a", Kind::kAllgather, 0, trace_clock());
  lives.reject("a");
  lives.end("a", DType::kFloat32, {});
  CHECK(recorder.take() == Texts{"tensor a", "begin NEGOTIATE_ALLGATHER", "tick 0", "end"});
}

TEST_CASE("an activity outside of an operation, and a second one within an activity, are not recorded", "[unit]") {
  Recorder recorder;
  TensorLives lives = recorder.lives(0, false);
  lives.begin_activity("a", "RING", nullptr);
  lives.begin("a", Kind::kAllreduce);
  lives.begin_activity("a", "RING", nullptr);
  lives.begin_activity("a", "QUEUE", nullptr);
  lives.end_activity("a");
  lives.end_activity("a");
  CHECK(recorder.take() == Texts{"tensor a", "begin ALLREDUCE", "begin RING", "end"});
}

TEST_CASE("a rank other than 0 records its own track only, and nothing without tracks", "[unit]") {
  Recorder recorder;
  const auto live = [](TensorLives lives) {
    lives.submitted("a", Kind::kAllreduce);
    lives.submitted("a", Kind::kAllreduce);
    lives.rank_ready("a", Kind::kAllreduce, 1, trace_clock());
    lives.begin("a", Kind::kAllreduce);
    lives.end("a", DType::kFloat32, {2});
  };
  live(recorder.lives(1, true));
  CHECK(recorder.take() == Texts{"track begin NEGOTIATE_ALLREDUCE", "track end NEGOTIATE_ALLREDUCE",
                                 "track begin ALLREDUCE", "track result ALLREDUCE"});
  live(recorder.lives(1, false));
  CHECK(recorder.take().empty());
}

TEST_CASE("the ranks' tracks have the ranks' names", "[unit]") {
  Recorder recorder;
  recorder.lives(0, true).name_ranks({"rank 0 on a", "rank 1 on b"});
  CHECK(recorder.take() == Texts{"rank rank 0 on a", "rank rank 1 on b"});
}
