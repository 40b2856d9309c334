#include "runtime/collectives/call_thread.hpp"

#include <string>
#include <vector>

#include "tests/catch.hpp"

using namespace runjob::runtime;
using runjob::Errc;
using runjob::Status;

TEST_CASE("calls run one after the other in their order, and all are done at the end", "[runtime][unit]") {
  std::vector<std::size_t> ran;
  std::vector<std::string> outcomes;
  {
    CallThread thread("test", [&](const Call& call) {
      ran.push_back(call.count);
      return call.count == 2 ? Status(Errc::kAborted, "two") : Status();
    });
    for (std::size_t i = 0; i < 5; ++i) {
      thread.start({.count = i}, [&](Status status) { outcomes.push_back(status.message()); });
    }
  }
  CHECK(ran == std::vector<std::size_t>{0, 1, 2, 3, 4});
  CHECK(outcomes == std::vector<std::string>{"", "", "two", "", ""});
}
