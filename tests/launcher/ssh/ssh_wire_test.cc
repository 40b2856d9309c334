#include "launcher/ssh/ssh_wire.hpp"

#include <array>
#include <cerrno>
#include <memory>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>

#include "tests/catch.hpp"
#include "tests/launcher/ssh/loop.hpp"

using namespace runjob;
namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

/// A wire and the other end of its connection.
struct Fixture {
  asio::io_context context;
  std::shared_ptr<SshWire> wire;
  tcp::socket peer{context};

  Fixture() {
    tcp::acceptor acceptor(context, {asio::ip::address_v4::loopback(), 0});
    tcp::socket ours(context);
    ours.connect(acceptor.local_endpoint());
    acceptor.accept(peer);
    wire = std::make_shared<SshWire>(std::move(ours));
  }

  std::string take(std::size_t most = 1000) {
    std::string data(most, '\0');
    const std::ptrdiff_t bytes = wire->take(data.data(), data.size());
    if (bytes < 0) return "error " + std::to_string(-bytes);
    data.resize(static_cast<std::size_t>(bytes));
    return data;
  }

  /// Waits for input; why there is none, or "".
  std::string wait() {
    std::string reason = "waiting";
    asio::co_spawn(context, wire->input(), [&](const std::exception_ptr& error) {
      reason.clear();
      try {
        if (error) std::rethrow_exception(error);
      } catch (const ConnectionEnded& end) {
        reason = end.what();
      }
    });
    run_until(context, [&] { return reason != "waiting"; });
    return reason;
  }
};

const std::string kNothing = "error " + std::to_string(EAGAIN);

}  // namespace

TEST_CASE("what arrives is taken in pieces of any size", "[unit]") {
  Fixture fixture;
  CHECK(fixture.take() == kNothing);
  asio::write(fixture.peer, asio::buffer("hello", 5));
  CHECK(fixture.wait().empty());
  CHECK(fixture.take(2) == "he");
  CHECK(fixture.take() == "llo");
  CHECK(fixture.take() == kNothing);
  CHECK(fixture.wire->beginning() == "hello");
  CHECK(fixture.wire->received() == 5);
}

TEST_CASE("what is put is sent by flush(), all of it and in its order", "[unit]") {
  Fixture fixture;
  const std::string text(300'000, 'x');
  CHECK(fixture.wire->put("ab", 2) == 2);
  fixture.wire->flush();
  CHECK(fixture.wire->put(text.data(), text.size()) == static_cast<std::ptrdiff_t>(text.size()));
  bool flushed = false;
  asio::co_spawn(fixture.context, fixture.wire->flushed(0), [&](const std::exception_ptr& error) {
    CHECK_FALSE(error);
    flushed = true;
  });
  std::string received(text.size() + 2, '\0');
  std::size_t size = 0;
  asio::async_read(fixture.peer, asio::buffer(received),
                   [&](const boost::system::error_code&, std::size_t bytes) { size = bytes; });
  REQUIRE(run_until(fixture.context, [&] { return flushed && size != 0; }));
  CHECK(received == "ab" + text);
}

TEST_CASE("the end comes after all that arrived before it", "[unit]") {
  Fixture fixture;
  asio::write(fixture.peer, asio::buffer("last", 4));
  fixture.peer.close();
  CHECK(fixture.wait().empty());
  CHECK(fixture.take() == "last");
  const std::string first = fixture.wait();  // the wire may hear of the end only now
  CHECK(fixture.take() == kNothing);
  CHECK(fixture.wait() == "the other side closed the connection");
  CHECK((first.empty() || first == "the other side closed the connection"));
}

TEST_CASE("closing wakes who waits, and sends what can be sent", "[unit]") {
  Fixture fixture;
  std::string reason;
  asio::co_spawn(fixture.context, fixture.wire->input(),
                 [&](const std::exception_ptr& error) { reason = error ? "ended" : "woken"; });
  fixture.context.poll();
  fixture.wire->put("bye", 3);
  fixture.wire->close();
  REQUIRE(run_until(fixture.context, [&] { return !reason.empty(); }));
  CHECK(fixture.wait() == "the connection was closed");
  CHECK(fixture.take() == kNothing);
  CHECK(fixture.wire->put("more", 4) == 4);
  std::array<char, 100> buffer{};
  boost::system::error_code ended;
  CHECK(asio::read(fixture.peer, asio::buffer(buffer), ended) == 3);
}

TEST_CASE("sending to one who is gone is noticed by the reader alone", "[unit]") {
  Fixture fixture;
  fixture.peer.set_option(asio::socket_base::linger(true, 0));  // makes it a reset
  fixture.peer.close();
  const std::string text(100'000, 'x');
  bool flushed = false;
  for (int i = 0; i < 3; ++i) {
    flushed = false;
    fixture.wire->put(text.data(), text.size());
    asio::co_spawn(fixture.context, fixture.wire->flushed(0), [&](const std::exception_ptr& error) {
      CHECK_FALSE(error);
      flushed = true;
    });
    REQUIRE(run_until(fixture.context, [&] { return flushed; }));
  }
  std::string reason = fixture.wait();
  if (reason.empty()) reason = fixture.wait();
  CHECK((reason == "Connection reset by peer" || reason == "the other side closed the connection"));
}
