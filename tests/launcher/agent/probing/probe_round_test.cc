#include "launcher/agent/probing/probe_round.hpp"

#include <cerrno>

#include "tests/catch.hpp"
#include "tests/launcher/agent/probing.hpp"

using namespace runjob;
namespace asio = boost::asio;

TEST_CASE("a host is reached where its own agent answers", "[net]") {
  asio::io_context context;
  const ProbeListener a(context.get_executor(), {token_of('a'), {"127.0.0.2", "127.0.0.3"}});
  const ProbeListener b(context.get_executor(), {token_of('b'), {"127.0.0.2", "::1"}});
  const auto port = [](const ProbeListener& listener, std::size_t index) {
    return listener.listening().ports.at(index).port;
  };
  CHECK(outcomes(context, {{0, "127.0.0.2", port(a, 0), token_of('a')},
                           {0, "127.0.0.3", port(a, 1), token_of('a')},
                           {1, "127.0.0.2", port(b, 0), token_of('b')},
                           {1, "::1", port(b, 1), token_of('b')}}) ==
        std::vector<ProbeOutcome>{kReached, kReached, kReached, kReached});
  SECTION("and not where another one does, although the address is the same") {
    CHECK(outcomes(context, {{0, "127.0.0.2", port(b, 0), token_of('a')}}) == std::vector<ProbeOutcome>{kStranger});
  }
}

TEST_CASE("a stranger that sends back what it got is not taken for ours", "[net]") {
  asio::io_context context;
  SilentPort echo(context);
  asio::ip::tcp::socket peer(context);
  std::string text(ProbeToken::kBytes, '\0');
  echo.acceptor().async_accept(peer, [&](boost::system::error_code) {
    asio::async_read(peer, asio::buffer(text),
                     [&](boost::system::error_code, std::size_t) { asio::write(peer, asio::buffer(text)); });
  });
  CHECK(outcomes(context, {{0, "127.0.0.1", echo.port(), token_of('a')}}) == std::vector<ProbeOutcome>{kStranger});
}

TEST_CASE("what cannot be connected to says why", "[net]") {
  asio::io_context context;
  int unused = 0;
  {
    const SilentPort closed(context);
    unused = closed.port();
  }
  CHECK(outcomes(context, {{0, "127.0.0.1", unused, token_of('a')}, {0, "eth0", 1, token_of('a')}}) ==
        std::vector<ProbeOutcome>{failed_with(ECONNREFUSED), failed_with(EINVAL)});
  CHECK(outcomes(context, {}).empty());
}

TEST_CASE("silence ends with the time limit", "[net]") {
  asio::io_context context;
  const SilentPort silent(context);
  CHECK(outcomes(context, {{0, "127.0.0.1", silent.port(), token_of('a')}}, /*limit_ms=*/20) ==
        std::vector<ProbeOutcome>{failed_with(ETIMEDOUT)});
}

TEST_CASE("silence of a host that has answered elsewhere is not waited out", "[net]") {
  asio::io_context context;
  const SilentPort silent(context);
  const ProbeListener listener(context.get_executor(), {token_of('a'), {"127.0.0.2"}});
  constexpr std::int64_t kFarAway = 1'000'000;  // the test's own time limit is far below
  CHECK(outcomes(context,
                 {{0, "127.0.0.1", silent.port(), token_of('a')},
                  {0, "127.0.0.2", listener.listening().ports.at(0).port, token_of('a')}},
                 kFarAway) == std::vector<ProbeOutcome>{failed_with(ETIMEDOUT), kReached});
}

TEST_CASE("a round that is given up leaves nothing behind and says nothing", "[net]") {
  asio::io_context context;
  const SilentPort silent(context);
  bool called = false;
  {
    const ProbeRound round(context.get_executor(), {{{0, "127.0.0.1", silent.port(), token_of('a')}}, 1'000'000},
                           [&](const ProbeResults&) { called = true; });
    context.poll();
  }
  context.restart();
  context.run();  // returns: no timer and no socket is waited for
  CHECK_FALSE(called);
}
