#include "launcher/ssh/resolve_name.hpp"

#include <algorithm>

#include <boost/asio/io_context.hpp>

#include "base/error.hpp"
#include "launcher/channel/with_timeout.hpp"
#include "tests/catch.hpp"
#include "tests/launcher/ssh/loop.hpp"

using namespace runjob;
using namespace std::chrono_literals;
namespace asio = boost::asio;

namespace {

using Endpoints = std::vector<asio::ip::tcp::endpoint>;

Endpoints resolve(const std::string& name) {
  asio::io_context context;
  return run_on(context, resolve_name(context.get_executor(), name, 2222));
}

}  // namespace

TEST_CASE("a numeric address is itself", "[unit]") {
  for (const char* text : {"127.0.0.1", "10.1.2.3", "::1", "fe80::1"}) {
    CHECK(resolve(text) == Endpoints{{asio::ip::make_address(text), 2222}});
  }
}

TEST_CASE("a name of /etc/hosts has its addresses", "[unit]") {
  const Endpoints endpoints = resolve("localhost");
  CHECK(std::any_of(endpoints.begin(), endpoints.end(),
                    [](const auto& each) { return each.address().is_loopback() && each.port() == 2222; }));
}

TEST_CASE("a name that can be none is not known", "[unit]") {
  CHECK_THROWS_AS(resolve(std::string(64, 'a')), Error);  // longer than a label may be: no server is asked
}

TEST_CASE("nobody waits for an answer that nobody wants any more", "[unit]") {
  asio::io_context context;
  const auto nothing =
      run_on(context, with_timeout(context.get_executor(), resolve_name(context.get_executor(), "localhost", 1), 0ms));
  CHECK((!nothing || !nothing->empty()));
}
