#include "rendezvous/http_connection.hpp"

#include <arpa/inet.h>
#include <functional>
#include <future>
#include <netinet/in.h>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "tests/catch.hpp"
#include "tests/rendezvous/local_rendezvous.hpp"
#include "tests/rendezvous/raw_socket.hpp"

using namespace runjob;
using namespace runjob::rendezvous;
using namespace std::chrono_literals;

namespace {

const Request kGet{"GET", "/v1/kv/s/k", "", 3};

HttpConnection::TimePoint in(std::chrono::milliseconds time) {
  return std::chrono::steady_clock::now() + time;
}

/// A TCP server on a free port of 127.0.0.1 that treats its connections one after the other as it is told.
class ScriptedServer {
 public:
  using Step = std::function<void(RawSocket)>;

  explicit ScriptedServer(std::vector<Step> steps) : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in any{};
    any.sin_family = AF_INET;
    any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof any;
    REQUIRE(::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&any), sizeof any) == 0);
    REQUIRE(::listen(listener_.get(), 8) == 0);
    REQUIRE(::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&any), &length) == 0);
    port_ = ntohs(any.sin_port);
    done_ = std::async(std::launch::async, [this, steps = std::move(steps)] {
      for (const Step& step : steps)
        step(RawSocket(UniqueFd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC))));
    });
  }

  ~ScriptedServer() { ::shutdown(listener_.get(), SHUT_RDWR); }  // ends accept4() when a step was not reached

  std::string port() const { return std::to_string(port_); }
  std::string address() const { return "http://127.0.0.1:" + port(); }

 private:
  UniqueFd listener_;
  int port_ = 0;
  std::future<void> done_;
};

void answer_one(RawSocket& socket, const std::string& body) {
  socket.read_until("\r\n\r\n");
  socket.send("HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
}

}  // namespace

TEST_CASE("addresses are taken apart strictly", "[unit]") {
  for (const char* good : {"unix:/tmp/x", "http://127.0.0.1:80", "http://[::1]:65535", "http://node-1:8080"})
    CHECK(HttpConnection(good).address() == good);
  for (const std::string bad : {"", "unix:", "/tmp/x", "http://", "http://host", "http://:80", "http://::1:80",
                                "https://host:80", "http://[]:80"}) {
    INFO(bad);
    CHECK_THROWS_WITH(
        HttpConnection(bad),
        "rendezvous address '" + bad + "': expected unix:PATH with a path under 108 bytes, or http://HOST:PORT");
  }
  CHECK_THROWS_AS(HttpConnection("unix:" + std::string(108, 'x')), Error);
  CHECK_THROWS_WITH(HttpConnection("http://host:99999"),
                    "rendezvous address 'http://host:99999': port: '99999' is not a whole number from 1 to 65535");
  CHECK_THROWS_AS(HttpConnection("http://host:80/"), Error);
}

TEST_CASE("requests go over TCP too, to a number or a name, on one connection", "[net]") {
  ScriptedServer server({[](RawSocket socket) {
    CHECK_NOFAIL(socket.read_until("\r\n\r\n") ==
                 "GET /v1/kv/s/k HTTP/1.1\r\nHost: localhost\r\nRunjob-Rank: 3\r\n\r\n");
    socket.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfirst");
    answer_one(socket, "second");
  }});
  HttpConnection connection("http://localhost:" + server.port());
  CHECK(connection.exchange(kGet, in(30s)).body.str() == "first");
  CHECK(connection.exchange(kGet, in(30s)).body.str() == "second");
}

TEST_CASE("a connection that broke is made anew once, without the caller noticing", "[net]") {
  ScriptedServer server({[](RawSocket socket) { socket.read_until("\r\n\r\n"); },
                         [](RawSocket socket) { answer_one(socket, "first"); },
                         [](RawSocket socket) { answer_one(socket, "second"); }});
  HttpConnection connection(server.address());
  CHECK(connection.exchange(kGet, in(30s)).body.str() == "first");
  CHECK(connection.exchange(kGet, in(30s)).body.str() == "second");
}

TEST_CASE("a connection that breaks twice is an error that says so", "[net]") {
  const ScriptedServer::Step cut = [](RawSocket socket) {
    socket.read_until("\r\n\r\n");
    socket.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf");
  };
  ScriptedServer server({cut, cut});
  HttpConnection connection(server.address());
  try {
    connection.exchange(kGet, in(30s));
    FAIL("nothing was thrown");
  } catch (const Error& error) {
    CHECK(error.code() == Errc::kConnect);
    CHECK_THAT(error.what(),
               ContainsSubstring("rendezvous " + server.address() + ": GET /v1/kv/s/k: connection lost twice: "));
  }
}

TEST_CASE("an answer that does not come in time is an error that says so", "[net]") {
  std::promise<void> seen;
  ScriptedServer server({[&seen](RawSocket socket) {
    answer_one(socket, "first");
    seen.get_future().wait();
  }});
  HttpConnection connection(server.address());
  CHECK(connection.exchange(kGet, in(30s)).body.str() == "first");
  try {
    connection.exchange(kGet, in(20ms));
    FAIL("nothing was thrown");
  } catch (const Error& error) {
    CHECK(error.code() == Errc::kTimeout);
    CHECK(error.what() == "rendezvous " + server.address() + ": no answer to GET /v1/kv/s/k in time");
  }
  seen.set_value();
}

TEST_CASE("an address where nobody listens is named with the reason", "[net]") {
  const TemporaryDirectory directory;
  HttpConnection nobody("unix:" + directory.path() + "/none");
  CHECK_THROWS_WITH(nobody.exchange(kGet, in(30s)),
                    "rendezvous unix:" + directory.path() +
                        "/none: cannot connect: No such file or directory; is the job still running?");
  std::string port;
  {
    const ScriptedServer closed({});
    port = closed.port();
  }
  HttpConnection refused("http://127.0.0.1:" + port);
  CHECK_THROWS_WITH(refused.exchange(kGet, in(30s)), "rendezvous http://127.0.0.1:" + port +
                                                         ": cannot connect: Connection refused; is the job still "
                                                         "running?");
  HttpConnection unknown("http://no-such-host.invalid:1");
  CHECK_THROWS_WITH(unknown.exchange(kGet, in(30s)), ContainsSubstring("look up no-such-host.invalid: "));
}

TEST_CASE("an answer given before the request was read is still understood", "[net]") {
  LocalRendezvous rendezvous({"a"});
  HttpConnection connection(rendezvous.address());
  const Request large{"PUT", "/v1/kv/s/k", std::string(kMaxBodyBytes + 1, 'x'), 0};
  const Response response = connection.exchange(large, in(30s));
  CHECK(response.status == 413);
  CHECK(connection.exchange(kGet, in(30s)).status == 400);  // rank 3 of 1; on a new connection
}
