#include "launcher/output/start_status.hpp"

#include <vector>

#include <boost/asio/io_context.hpp>

#include "tests/catch.hpp"

using namespace runjob;

namespace {

struct Shown {
  boost::asio::io_context context;
  std::vector<std::string> what;
  StartStatus status{context.get_executor(), allocate({{"s1", 2, "", {}, "", {}}}, std::nullopt),
                     [this](const std::string& line, const std::string& text) {
                       what.push_back(text);
                       if (!text.empty()) CHECK(line.substr(0, text.size() + 2) == text + " (");
                     }};
};

}  // namespace

TEST_CASE("a start that is done before anybody looks shows nothing", "[unit]") {
  Shown shown;
  shown.status.start();
  for (int rank = 0; rank < 2; ++rank) {
    shown.status.line().rank_started(rank);
    shown.status.update();
  }
  shown.context.run();  // the first tick is the last
  CHECK(shown.what == std::vector<std::string>{""});
}

TEST_CASE("a wait is shown until it is over, and again when another one begins", "[unit]") {
  Shown shown;
  shown.status.line().rank_started(0);
  shown.status.start();
  shown.context.run_one();
  const std::string waiting = "ranks: 1 of 2 started, waiting for rank 1 on s1";
  REQUIRE(shown.what == std::vector<std::string>{waiting});
  shown.status.line().rank_started(1);
  shown.status.update();
  CHECK(shown.what == std::vector<std::string>{waiting, ""});
  shown.what.clear();
  shown.status.line().rank_joined(0);
  shown.status.update();
  while (shown.what.empty()) shown.context.run_one();
  CHECK(shown.what == std::vector<std::string>{"init: 1 of 2 ranks, waiting for rank 1 on s1"});
  shown.status.stop();
  CHECK(shown.what.back().empty());
  shown.context.run();
  CHECK(shown.what.size() == 2);
}
