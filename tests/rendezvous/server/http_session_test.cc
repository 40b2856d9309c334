#include "rendezvous/server/http_session.hpp"

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/rendezvous/eventually.hpp"
#include "tests/rendezvous/local_rendezvous.hpp"
#include "tests/rendezvous/raw_socket.hpp"

using namespace runjob::rendezvous;
using namespace std::chrono_literals;

namespace {

std::string request(const std::string& method, const std::string& target, const std::string& body = "",
                    const std::string& headers = "") {
  return method + " " + target + " HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\n" + headers + "\r\n" + body;
}

int waiting_gathers(LocalRendezvous& rendezvous) {
  return nlohmann::json::parse(rendezvous.status())["open_gathers"].get<int>();
}

}  // namespace

TEST_CASE("one connection carries many requests, also sent ahead of their answers", "[net]") {
  LocalRendezvous rendezvous({"a"});
  RawSocket socket = RawSocket::connect_to(rendezvous.path());
  CHECK(socket.send(request("PUT", "/v1/kv/s/k", "value") + request("GET", "/v1/kv/s/k") + request("GET", "/nowhere")));
  CHECK(socket.read_answer() == "200 ");
  CHECK(socket.read_answer() == "200 value");
  CHECK(socket.read_answer() == R"(404 {"error":"no such path: /nowhere"})");
  CHECK(socket.send(request("GET", "/v1/kv/s/k", "", "Connection: close\r\n")));
  CHECK(socket.read_answer() == "200 value");
  CHECK(socket.read_answer() == "hung up");
}

TEST_CASE("a method that is not there is refused, and HEAD ends the connection", "[net]") {
  LocalRendezvous rendezvous({"a"});
  RawSocket socket = RawSocket::connect_to(rendezvous.path());
  CHECK(socket.send(request("BREW", "/v1/status") + request("HEAD", "/v1/status")));
  CHECK(socket.read_answer() == R"(405 {"error":"BREW is not possible here, only GET"})");
  CHECK(socket.read_answer() == R"(405 {"error":"HEAD is not possible here, only GET"})");
  CHECK(socket.read_answer() == "hung up");
}

TEST_CASE("a request may come ahead while another one's answer is awaited", "[net]") {
  LocalRendezvous rendezvous({"a"});
  RawSocket waiting = RawSocket::connect_to(rendezvous.path());
  CHECK(waiting.send(request("GET", "/v1/kv/s/k?wait=60")));
  CHECK(waiting.send(request("GET", "/v1/kv/s/other")));
  RawSocket other = RawSocket::connect_to(rendezvous.path());
  CHECK(other.send(request("PUT", "/v1/kv/s/k", "v")));
  CHECK(other.read_answer() == "200 ");
  CHECK(waiting.read_answer() == "200 v");
  CHECK(waiting.read_answer() == R"(404 {"error":"no key 'other' in scope 's'"})");
}

TEST_CASE("the rank comes from its header", "[net]") {
  LocalRendezvous rendezvous({"a"});
  RawSocket socket = RawSocket::connect_to(rendezvous.path());
  CHECK(socket.send(request("POST", "/v1/gather/x", "blob", "runjob-rank: 0\r\n")));
  CHECK(decode_blobs(socket.read_answer().substr(4)) == std::vector<std::string>{"blob"});
  CHECK(socket.send(request("POST", "/v1/gather/x", "blob", "Runjob-Rank: zero\r\n")));
  CHECK(socket.read_answer() == R"(400 {"error":"Runjob-Rank: 'zero' is not a whole number from 0 to 2147483647"})");
  CHECK(socket.read_answer() == "hung up");
}

TEST_CASE("what is not HTTP is refused and the connection ends", "[net]") {
  LocalRendezvous rendezvous({"a"});
  for (const std::string bad : {"\n\n\n\n", "hello\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "\x16\x03\x01\x02\r\n",
                                "GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n",
                                "GET / HTTP/1.1\r\nContent-Length: 99999999999999999999999\r\n\r\n"}) {
    INFO(bad);
    RawSocket socket = RawSocket::connect_to(rendezvous.path());
    CHECK(socket.send(bad));
    CHECK_THAT(socket.read_answer(), ContainsSubstring("400 {\"error\":\"malformed HTTP: "));
    socket.finish_sending();
    CHECK(socket.read_answer() == "hung up");
  }
}

TEST_CASE("bodies and headers over their bounds are refused", "[net]") {
  LocalRendezvous rendezvous({"a"});
  const std::string too_large = R"(413 {"error":"the body is over the limit of 16777216 bytes"})";
  RawSocket announced = RawSocket::connect_to(rendezvous.path());
  CHECK(announced.send("PUT /v1/kv/s/k HTTP/1.1\r\nContent-Length: 16777217\r\n\r\n"));
  CHECK(announced.read_answer() == too_large);

  RawSocket sent = RawSocket::connect_to(rendezvous.path());
  CHECK(sent.send(request("PUT", "/v1/kv/s/k", std::string(kMaxBodyBytes + 1, 'x'))));
  CHECK(sent.read_answer() == too_large);

  RawSocket chunked = RawSocket::connect_to(rendezvous.path());
  CHECK(chunked.send("PUT /v1/kv/s/k HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"));
  const std::string chunk = "100000\r\n" + std::string(1 << 20, 'x') + "\r\n";
  for (int i = 0; i < 17; ++i) CHECK(chunked.send(chunk));
  CHECK(chunked.read_answer() == too_large);

  RawSocket headers = RawSocket::connect_to(rendezvous.path());
  CHECK(headers.send(request("GET", "/v1/status", "", "X: " + std::string(20000, 'x') + "\r\n")));
  CHECK(headers.read_answer() == R"(431 {"error":"the headers are over the limit of 16384 bytes"})");

  RawSocket largest = RawSocket::connect_to(rendezvous.path());
  CHECK(largest.send(request("PUT", "/v1/kv/s/k", std::string(kMaxBodyBytes, 'x'))));
  CHECK(largest.read_answer() == "200 ");
}

TEST_CASE("a request that is not complete in time ends the connection, an idle one stays", "[net]") {
  HttpLimits limits;
  limits.message_timeout = 1ms;
  LocalRendezvous rendezvous({"a"}, 30s, limits);
  RawSocket idle = RawSocket::connect_to(rendezvous.path());
  RawSocket half = RawSocket::connect_to(rendezvous.path());
  CHECK(half.send("GET /v1/status HTTP/1.1\r\nHost:"));
  CHECK(half.read_to_end() == "");
  RawSocket half_body = RawSocket::connect_to(rendezvous.path());
  CHECK(half_body.send("PUT /v1/kv/s/k HTTP/1.1\r\nContent-Length: 10\r\n\r\nhalf"));
  CHECK(half_body.read_to_end() == "");
  CHECK(idle.is_open());
}

TEST_CASE("a peer that does not take its answer is cut off", "[net]") {
  HttpLimits limits;
  limits.message_timeout = 300ms;
  LocalRendezvous rendezvous({"a"}, 30s, limits);
  rendezvous.on_service([](Service& service) {
    service.handle({"PUT", "/v1/kv/s/k", std::string(kMaxBodyBytes, 'x')}, Service::TimePoint(),
                   [](const Response&) {});
  });
  const long before = open_descriptors();
  RawSocket lazy = RawSocket::connect_to(rendezvous.path());
  CHECK(lazy.send(request("GET", "/v1/kv/s/k")));
  lazy.read_until("\r\n\r\n");
  CHECK(eventually([&] { return open_descriptors() == before + 1; }));  // only ours is left
  CHECK(lazy.read_to_end().size() < kMaxBodyBytes);
}

TEST_CASE("a peer that hangs up while it waits frees its connection, and its blob stays", "[net]") {
  LocalRendezvous rendezvous({"a", "a"});
  const long before = open_descriptors();
  RawSocket gone = RawSocket::connect_to(rendezvous.path());
  CHECK(gone.send(request("POST", "/v1/gather/x", "from 0", "Runjob-Rank: 0\r\n")));
  CHECK(eventually([&] { return waiting_gathers(rendezvous) == 1; }));
  gone.hang_up();
  CHECK(eventually([&] { return open_descriptors() == before; }));
  RawSocket other = RawSocket::connect_to(rendezvous.path());
  CHECK(other.send(request("POST", "/v1/gather/x", "from 1", "Runjob-Rank: 1\r\n")));
  CHECK(decode_blobs(other.read_answer().substr(4)) == std::vector<std::string>{"from 0", "from 1"});
}

TEST_CASE("a hundred connections that wait do not keep others from being served", "[net]") {
  LocalRendezvous rendezvous(std::vector<std::string>(101, "a"));
  std::vector<RawSocket> waiting;
  for (int rank = 0; rank < 100; ++rank) {
    waiting.push_back(RawSocket::connect_to(rendezvous.path()));
    CHECK(waiting.back().send(request("POST", "/v1/barrier/x", "", "Runjob-Rank: " + std::to_string(rank) + "\r\n")));
  }
  RawSocket last = RawSocket::connect_to(rendezvous.path());
  CHECK(last.send(request("GET", "/v1/kv/s/k")));
  CHECK(last.read_answer() == R"(404 {"error":"no key 'k' in scope 's'"})");
  CHECK(last.send(request("POST", "/v1/barrier/x", "", "Runjob-Rank: 100\r\n")));
  CHECK(last.read_answer() == "200 ");
  for (RawSocket& socket : waiting) CHECK(socket.read_answer() == "200 ");
}
