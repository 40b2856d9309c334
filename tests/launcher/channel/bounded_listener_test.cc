#include "launcher/channel/bounded_listener.hpp"

#include <chrono>
#include <fcntl.h>
#include <list>
#include <string>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <fmt/format.h>

#include "base/error.hpp"
#include "base/log.hpp"
#include "launcher/channel/no_throw.hpp"
#include "tests/catch.hpp"
#include "tests/launcher/redirected_output.hpp"

using namespace runjob;
using namespace std::chrono_literals;

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

/// A listener that keeps the connections that send "me", refuses those that send "no", and the others' end.
class Listening {
 public:
  explicit Listening(BoundedListener::Bounds bounds)
      : listener(context.get_executor(), bounds, [this](auto... given) { return serve(std::move(given)...); }) {
    boost::system::error_code error;
    StreamAcceptor acceptor = listen_everywhere(context.get_executor(), 0, error);
    REQUIRE_FALSE(error);
    port_ = port_of(acceptor);
    listener.accept_from(std::move(acceptor));
  }

  tcp::socket connected() {
    tcp::socket socket(context);
    socket.connect({asio::ip::make_address("127.0.0.1"), static_cast<std::uint16_t>(port_)});
    return socket;
  }
  /// What a connection receives until the listener closes it.
  std::string received(tcp::socket& socket) {
    std::string text;
    bool is_closed = false;
    asio::async_read(socket, asio::dynamic_buffer(text), [&](auto, std::size_t) { is_closed = true; });
    run_until([&] { return is_closed; });
    return text;
  }
  template <class Condition>
  void run_until(Condition holds) {
    while (!holds() && context.run_one() != 0) {
    }
  }

  asio::io_context context;
  std::list<StreamSocket> kept;
  std::list<std::string> peers;
  int served = 0;  // connections whose serving has begun
  BoundedListener listener;

 private:
  asio::awaitable<void> serve(StreamSocket socket, std::string peer) {
    ++served;
    char word[2];
    const asio::mutable_buffer room = asio::buffer(word);
    const auto [error, bytes] = co_await asio::async_read(socket, room, kNoThrow);
    if (error) throw Error(Errc::kConnect, "it has left");
    if (std::string(word, bytes) != "me") throw Error(Errc::kProtocol, "it sent\nsomething else");
    kept.push_back(std::move(socket));
    peers.push_back(std::move(peer));
  }

  int port_ = 0;
};

void send(tcp::socket& socket, const std::string& text) {
  asio::write(socket, asio::buffer(text));
}

/// What is logged while `run` runs.
template <class Run>
std::string warnings_of(Run run) {
  const UniqueFd errors = memory_file();
  log::configure(log::Level::kWarn, "");  // another file of this program logs errors alone
  {
    const Redirected redirected(STDERR_FILENO, errors.get());
    run();
  }
  log::configure(log::Level::kError, "");
  return contents(errors);
}

}  // namespace

TEST_CASE("a listener hands over who shows who it is, and drops the oldest who does not", "[net]") {
  Listening it({2, 60s});
  auto first = it.connected(), second = it.connected();
  it.run_until([&] { return it.served == 2; });
  auto third = it.connected();
  CHECK(it.received(first).empty());
  send(second, "me");
  it.run_until([&] { return it.kept.size() == 1; });
  auto fourth = it.connected();  // has the place of the second one
  it.run_until([&] { return it.served == 4; });
  send(third, "me");
  send(fourth, "me");
  it.run_until([&] { return it.kept.size() == 3; });
  CHECK_THAT(it.peers.front(), ContainsSubstring("127.0.0.1 port ") && !ContainsSubstring("ffff"));
  CHECK((::fcntl(it.kept.front().native_handle(), F_GETFD) & FD_CLOEXEC) != 0);
  it.listener.stop();
  asio::write(it.kept.front(), asio::buffer("hi", 2));  // what was handed over stays open
  it.kept.clear();
  CHECK(it.received(second) == "hi");
}

TEST_CASE("a stopped listener has closed its port and what it serves", "[net]") {
  Listening it({8, 60s});
  auto silent = it.connected();
  it.run_until([&] { return it.served == 1; });
  it.listener.stop();
  CHECK(it.received(silent).empty());
  CHECK_THROWS_WITH(it.connected(), ContainsSubstring("Connection refused"));
  it.context.run();  // has nothing left to do
}

TEST_CASE("the first ten refusals are logged with their reasons, and who leaves or is dropped is none", "[net]") {
  const std::string text = warnings_of([] {
    Listening it({1, 60s});
    auto dropped = it.connected();
    it.run_until([&] { return it.served == 1; });
    auto leaving = it.connected();
    CHECK(it.received(dropped).empty());
    leaving.close();
    for (int i = 0; i < 12; ++i) {
      auto refused = it.connected();
      send(refused, "no");
      CHECK(it.received(refused).empty());
    }
  });
  int lines = 0;
  for (std::size_t at = 0; (at = text.find("refused a connection from 127.0.0.1 port ", at)) != std::string::npos; ++at)
    ++lines;
  CHECK(lines == 10);
  CHECK_THAT(text, !ContainsSubstring("it has left") && !ContainsSubstring("it sent\nsomething"));
  CHECK_THAT(text, ContainsSubstring("runjob: warning: further refusals are not reported\n"));
}

TEST_CASE("who does not show in time who it is gets refused", "[net]") {
  const std::string text = warnings_of([] {
    Listening it({8, 20ms});
    auto silent = it.connected();
    CHECK(it.received(silent).empty());
  });
  CHECK_THAT(text, ContainsSubstring("it has not shown within 0.02 s that it belongs to the job"));
}

TEST_CASE("the address of an endpoint is written as people write it", "[unit]") {
  CHECK(ip_address_text(tcp::endpoint(asio::ip::make_address("::ffff:10.0.0.7"), 1)) == "10.0.0.7");
  CHECK(ip_address_text(tcp::endpoint(asio::ip::make_address("10.0.0.7"), 1)) == "10.0.0.7");
  CHECK(ip_address_text(tcp::endpoint(asio::ip::make_address("fe80::1"), 1)) == "fe80::1");
  CHECK(ip_address_text(asio::local::stream_protocol::endpoint("/tmp/some.sock")).empty());
}

TEST_CASE("an address that is not of this host is an error", "[unit]") {
  asio::io_context context;
  boost::system::error_code error;
  listen_at(context.get_executor(), tcp::endpoint(asio::ip::make_address("203.0.113.1"), 0), error);
  CHECK(error.value() == EADDRNOTAVAIL);
}
