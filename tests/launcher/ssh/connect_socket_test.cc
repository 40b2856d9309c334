#include "launcher/ssh/connect_socket.hpp"

#include <boost/asio/io_context.hpp>

#include "base/error.hpp"
#include "launcher/channel/with_timeout.hpp"
#include "tests/catch.hpp"
#include "tests/launcher/ssh/loop.hpp"
#include "tests/launcher/ssh/test_listener.hpp"

using namespace runjob;
using namespace std::chrono_literals;
namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

tcp::endpoint at(int port) {
  return {asio::ip::address_v4::loopback(), static_cast<unsigned short>(port)};
}

/// The port that was connected to.
asio::awaitable<int> port_of_winner(asio::io_context& context, std::vector<tcp::endpoint> endpoints) {
  const tcp::socket socket = co_await connect_socket(context.get_executor(), std::move(endpoints));
  co_return socket.remote_endpoint().port();
}

}  // namespace

TEST_CASE("the first address that answers wins, past those that refuse or drop everything", "[unit]") {
  asio::io_context context;
  const TestListener listener(context, "", TestListener::Then::kWait);
  const ClosedPort closed(context);
  const SilentPort silent(context);
  const int good = listener.port();
  CHECK(run_on(context, port_of_winner(context, {at(good)})) == good);
  CHECK(run_on(context, port_of_winner(context, {at(closed.port()), at(good)})) == good);
  CHECK(run_on(context, port_of_winner(context, {at(silent.port()), at(good)})) == good);
  CHECK(run_on(context, port_of_winner(context, {at(silent.port()), at(closed.port()), at(good)})) == good);
}

TEST_CASE("when all refuse, the first one's reason is told", "[unit]") {
  asio::io_context context;
  const ClosedPort one(context);
  const ClosedPort two(context);
  CHECK_THROWS_WITH(run_on(context, port_of_winner(context, {at(one.port()), at(two.port())})),
                    "127.0.0.1 port " + std::to_string(one.port()) + ": Connection refused");
}

TEST_CASE("an address that drops everything is waited for as long as the caller likes", "[unit]") {
  asio::io_context context;
  const SilentPort silent(context);
  auto connecting = port_of_winner(context, {at(silent.port()), at(silent.port())});
  CHECK_FALSE(run_on(context, with_timeout(context.get_executor(), std::move(connecting), 300ms)));
}
