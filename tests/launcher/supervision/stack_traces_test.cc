#include "launcher/supervision/stack_traces.hpp"

#include <boost/asio/io_context.hpp>

#include "tests/catch.hpp"

using namespace runjob;

namespace {

struct Round {
  boost::asio::io_context context;
  std::string events;
  StackTraces traces{context.get_executor(),
                     {[this](ToAgent type) { events += type == ToAgent::kStackTraces ? "native " : "python "; },
                      [this] { events += "hold "; }, [this] { events += "done "; }}};
};

const StackTrace kNative{"TID 1:\n#0  0x1 poll\n", "", false};
const StackTrace kPython{"TID 1:\n#0  0x1 poll\n", "", true};

}  // namespace

TEST_CASE("no rank is disturbed before all have been looked at", "[unit]") {
  Round round;
  round.traces.start({0, 1, 2});
  round.traces.on_trace(0, kPython);
  round.traces.on_trace(1, kNative);
  CHECK(round.events == "native ");
  round.traces.on_trace(2, kPython);
  CHECK(round.events == "native hold python ");
  round.traces.on_rank_gone(1);  // it was not waited for
  round.traces.on_rank_gone(0);
  CHECK(round.events == "native hold python ");
  round.traces.on_rank_gone(2);
  CHECK(round.events == "native hold python done ");
  round.traces.on_trace(2, kNative);
  round.traces.on_rank_gone(2);
  CHECK(round.events == "native hold python done ");
}

TEST_CASE("without Python it is over after the native stacks, and without ranks at once", "[unit]") {
  Round round;
  round.traces.start({0, 1});
  round.traces.on_rank_gone(0);
  round.traces.on_trace(1, kNative);
  CHECK(round.events == "native done ");
  Round lost;
  lost.traces.start({0, 1, 2});
  lost.traces.wait_only_for({1});
  CHECK(lost.events == "native ");
  lost.traces.wait_only_for({});
  CHECK(lost.events == "native done ");
  Round empty;
  empty.traces.start({});
  CHECK(empty.events == "native done ");
}

TEST_CASE("ranks whose native stacks do not come in time print their own all the same", "[unit]") {
  Round round;
  round.traces.start({0, 1});
  round.traces.on_trace(0, kNative);
  round.context.run_one();  // the time is over
  CHECK(round.events == "native hold python ");
  round.traces.on_rank_gone(1);
  CHECK(round.events == "native hold python done ");
}

TEST_CASE("the report has what came, and gives back what is no stack", "[unit]") {
  Round round;
  round.traces.start({0, 1});
  round.traces.on_trace(0, kPython);
  round.traces.on_rank_gone(1);
  StackTraces::Errors errors = {{0,
                                 "said\nFatal Python error: Aborted\n\nCurrent thread 0x1 (most recent call first):\n  "
                                 "File \"a\", line 1 in f\n"}};
  const std::string report = round.traces.report(allocate({{"s1", 2, "", {}, "", {}}}, std::nullopt), errors);
  CHECK_THAT(report, ContainsSubstring("File \"a\", line 1 in f"));
  CHECK_THAT(report, ContainsSubstring("no native stack: its host did not answer in time"));
  CHECK(errors[0] == "said\n");
}
