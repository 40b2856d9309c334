#include "runtime/timeline/trace_writer.hpp"

#include <thread>

#include "tests/catch.hpp"

using namespace runjob::runtime;

namespace {

class Kept : public TraceSink {
 public:
  explicit Kept(std::vector<int>& ids, std::size_t most) : ids_(ids), most_(most) {}
  bool write(const std::vector<TraceRecord>& batch) override {
    for (const TraceRecord& record : batch) ids_.push_back(record.id);
    return ids_.size() < most_;
  }

 private:
  std::vector<int>& ids_;
  const std::size_t most_;
};

}  // namespace

TEST_CASE("what was added is in the sink after a drain, in order, and after the end", "[runtime][unit]") {
  std::vector<int> ids;
  {
    TraceWriter writer(std::make_shared<Kept>(ids, 1'000'000));
    for (int i = 0; i < 10'000; ++i) writer.add({.id = i});
    writer.drain();
    REQUIRE(ids.size() == 10'000);
    writer.add({.id = 10'000});
  }
  REQUIRE(ids.size() == 10'001);
  for (int i = 0; i <= 10'000; ++i) REQUIRE(ids[static_cast<std::size_t>(i)] == i);
}

TEST_CASE("nothing is kept for a sink that takes nothing any more", "[runtime][unit]") {
  std::vector<int> ids;
  {
    TraceWriter writer(std::make_shared<Kept>(ids, 1));
    writer.add({.id = 1});
    writer.drain();
    writer.add({.id = 2});
    writer.drain();
  }
  CHECK(ids == std::vector<int>{1});
}

TEST_CASE("records of several threads all arrive", "[runtime][unit]") {
  std::vector<int> ids;
  {
    TraceWriter writer(std::make_shared<Kept>(ids, 1'000'000));
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&writer] {
        for (int i = 0; i < 5'000; ++i) writer.add({.id = i});
        writer.drain();
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  CHECK(ids.size() == 20'000);
}
