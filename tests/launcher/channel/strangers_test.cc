#include "launcher/channel/strangers.hpp"

#include <boost/asio/io_context.hpp>

#include "tests/catch.hpp"

using namespace runjob;
using boost::asio::ip::tcp;

TEST_CASE("the oldest stranger goes when there is no room", "[unit]") {
  boost::asio::io_context context;
  Strangers strangers(2);
  const auto add = [&] { return strangers.add(tcp::socket(context, tcp::v4())); };
  const auto first = add(), second = add(), third = add();
  CHECK_FALSE(first->is_open());
  CHECK(second->is_open());
  strangers.remove(first);  // its coroutine, which has seen it close
  strangers.remove(third);  // it has shown who it is
  const auto fourth = add();
  CHECK(second->is_open());
  strangers.close_all();
  CHECK_FALSE(second->is_open());
  CHECK_FALSE(fourth->is_open());
  CHECK(third->is_open());
}
