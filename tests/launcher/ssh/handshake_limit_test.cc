#include "launcher/ssh/handshake_limit.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "tests/catch.hpp"

using namespace runjob;
namespace asio = boost::asio;

namespace {

struct Count {
  int inside = 0;
  int most = 0;
  int done = 0;
};

asio::awaitable<void> take_turn(asio::io_context& context, HandshakeLimit& limit, Count& count) {
  const HandshakeLimit::Permit permit = co_await limit.acquire();
  count.most = std::max(count.most, ++count.inside);
  for (int i = 0; i < 3; ++i) co_await asio::post(context, asio::use_awaitable);
  --count.inside;
  ++count.done;
}

void rethrow(const std::exception_ptr& error) {
  if (error) std::rethrow_exception(error);
}

}  // namespace

TEST_CASE("no more than the limit are inside, and everybody has a turn", "[unit]") {
  const int most = GENERATE(1, 3, 100);
  asio::io_context context;
  HandshakeLimit limit(context.get_executor(), most);
  Count count;
  for (int i = 0; i < 20; ++i) asio::co_spawn(context, take_turn(context, limit, count), rethrow);
  context.run();
  CHECK(count.done == 20);
  CHECK(count.most == std::min(most, 20));
}

TEST_CASE("one that is cancelled while it waits, or just as it is woken, holds up nobody", "[unit]") {
  asio::io_context context;
  HandshakeLimit limit(context.get_executor(), 1);
  Count count;
  asio::cancellation_signal cancel;
  asio::co_spawn(context, take_turn(context, limit, count), rethrow);
  asio::co_spawn(context, take_turn(context, limit, count),
                 asio::bind_cancellation_slot(cancel.slot(), [](const std::exception_ptr& error) { CHECK(error); }));
  asio::co_spawn(context, take_turn(context, limit, count), rethrow);
  const bool when_woken = GENERATE(false, true);
  while (count.done == 0 && (when_woken || count.inside == 0)) REQUIRE(context.run_one() == 1);
  cancel.emit(asio::cancellation_type::terminal);
  context.run();
  CHECK(count.done == 2);
}

TEST_CASE("the limit may end before those who wait for it", "[unit]") {
  asio::io_context context;  // destroys the coroutines, after the limit
  HandshakeLimit limit(context.get_executor(), 1);
  Count count;
  for (int i = 0; i < 3; ++i) asio::co_spawn(context, take_turn(context, limit, count), rethrow);
  while (count.inside == 0) REQUIRE(context.run_one() == 1);
  REQUIRE(context.poll_one() == 1);  // a second one begins to wait
  CHECK(count.most == 1);
}
