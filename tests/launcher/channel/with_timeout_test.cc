#include "launcher/channel/with_timeout.hpp"

#include <stdexcept>
#include <string>

#include <boost/asio/io_context.hpp>

#include "tests/catch.hpp"
#include "tests/launcher/ssh/loop.hpp"

using namespace runjob;
using namespace std::chrono_literals;
namespace asio = boost::asio;

namespace {

asio::awaitable<std::string> answer() {
  co_return "answer";
}

asio::awaitable<std::string> fail() {
  throw std::runtime_error("failed");
  co_return "";
}

struct Witness {
  bool& ended;
  ~Witness() { ended = true; }
};

asio::awaitable<std::string> wait_for_ever(asio::io_context& context, bool& ended) {
  const Witness witness{ended};
  asio::steady_timer timer(context, asio::steady_timer::time_point::max());
  co_await timer.async_wait(asio::use_awaitable);
  co_return "never";
}

}  // namespace

TEST_CASE("what ends in time gives its result", "[unit]") {
  asio::io_context context;
  CHECK(run_on(context, with_timeout(context.get_executor(), answer(), 1h)) == "answer");
}

TEST_CASE("what throws throws at once", "[unit]") {
  asio::io_context context;
  CHECK_THROWS_WITH(run_on(context, with_timeout(context.get_executor(), fail(), 1h)), "failed");
}

TEST_CASE("what takes too long is cancelled", "[unit]") {
  asio::io_context context;
  bool ended = false;
  CHECK_FALSE(run_on(context, with_timeout(context.get_executor(), wait_for_ever(context, ended), 1ms)));
  CHECK(ended);
}
