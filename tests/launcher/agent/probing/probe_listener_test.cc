#include "launcher/agent/probing/probe_listener.hpp"

#include <cerrno>

#include "tests/catch.hpp"
#include "tests/launcher/agent/probing.hpp"

using namespace runjob;
namespace asio = boost::asio;

namespace {

asio::ip::tcp::socket connected(asio::io_context& context, int port) {
  asio::ip::tcp::socket socket(context);
  socket.connect({asio::ip::make_address("127.0.0.2"), static_cast<std::uint16_t>(port)});
  return socket;
}

/// What `socket` receives until it is closed, while the loop runs.
std::string received(asio::io_context& context, asio::ip::tcp::socket& socket) {
  std::string text;
  bool done = false;
  asio::async_read(socket, asio::dynamic_buffer(text), [&](boost::system::error_code, std::size_t) { done = true; });
  run_until(context, done);
  return text;
}

}  // namespace

TEST_CASE("a probe's listener says at which port each address listens, or why not", "[net]") {
  asio::io_context context;
  const ProbeListener listener(context.get_executor(),
                               {token_of('a'), {"127.0.0.2", "203.0.113.1", "eth0", "127.0.0.3"}});
  const std::vector<ProbePort>& ports = listener.listening().ports;
  REQUIRE(ports.size() == 4);
  CHECK(ports[0].port > 0);
  CHECK(ports[1] == ProbePort{0, EADDRNOTAVAIL});
  CHECK(ports[2] == ProbePort{0, EINVAL});
  CHECK(ports[3].port > 0);
}

TEST_CASE("who knows the question is answered, and nobody else", "[net]") {
  asio::io_context context;
  const ProbeListener listener(context.get_executor(), {token_of('a'), {"127.0.0.2"}});
  const int port = listener.listening().ports.at(0).port;
  auto friendly = connected(context, port), stranger = connected(context, port);
  asio::write(friendly, asio::buffer(token_of('a').question));
  asio::write(stranger, asio::buffer(token_of('b').question));
  CHECK(received(context, friendly) == token_of('a').answer);
  CHECK(received(context, stranger).empty());
}

TEST_CASE("no more strangers than allowed are held at a time, and they keep nobody out", "[net]") {
  asio::io_context context;
  const ProbeListener listener(context.get_executor(), {token_of('a'), {"127.0.0.2"}}, /*most_connections=*/8);
  const int port = listener.listening().ports.at(0).port;
  std::vector<asio::ip::tcp::socket> silent;
  for (int i = 0; i < 8; ++i) silent.push_back(connected(context, port));
  auto friendly = connected(context, port);
  asio::write(friendly, asio::buffer(token_of('a').question));
  CHECK(received(context, friendly) == token_of('a').answer);
  CHECK(received(context, silent.front()).empty());  // cut off
}

TEST_CASE("a probe's listener is gone with its object, and so are its connections", "[net]") {
  asio::io_context context;
  int port = 0;
  asio::ip::tcp::socket open(context);
  {
    const ProbeListener listener(context.get_executor(), {token_of('a'), {"127.0.0.2"}});
    port = listener.listening().ports.at(0).port;
    open = connected(context, port);
  }
  CHECK(received(context, open).empty());
  CHECK_THROWS_WITH(connected(context, port), ContainsSubstring("Connection refused"));
}
