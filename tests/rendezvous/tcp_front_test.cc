/// What an attacker on the network can do to the TCP front of a job: nothing.
#include <algorithm>
#include <future>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/log.hpp"
#include "rendezvous/client.hpp"
#include "tests/catch.hpp"
#include "tests/rendezvous/eventually.hpp"
#include "tests/rendezvous/local_rendezvous.hpp"
#include "tests/rendezvous/scripted_server.hpp"

using namespace runjob;
using namespace runjob::rendezvous;
using namespace std::chrono_literals;

namespace {

/// Each refusal is logged, and here they are many.
const bool kQuiet = (log::configure(log::Level::kError, ""), true);

const std::string kRefusal = R"(401 {"error":"the request is not signed with the job's key"})";

const std::vector<Request> kEverything = {{"POST", "/v1/join", R"({"rank":0,"pid":1})", 0},
                                          {"POST", "/v1/gather/x", "blob", 0},
                                          {"POST", "/v1/barrier/x", "", 0},
                                          {"GET", "/v1/kv/s/k", "", -1},
                                          {"PUT", "/v1/kv/s/k", "value", -1},
                                          {"DELETE", "/v1/kv/s/k", "", -1},
                                          {"GET", "/v1/status", "", -1},
                                          {"GET", "/", "", -1}};

/// What the job looks like from inside.
nlohmann::json state_of(LocalRendezvous& rendezvous) {
  return nlohmann::json::parse(rendezvous.status());
}

/// That the front refuses `text` on a fresh connection and ends it.
void check_refused(LocalRendezvous& rendezvous, const std::string& text) {
  RawSocket socket = RawSocket::connect_to(rendezvous.port());
  CHECK(socket.send(text));
  CHECK(socket.read_answer() == kRefusal);
  socket.finish_sending();
  CHECK(socket.read_to_end() == "");
}

}  // namespace

TEST_CASE("no unsigned request reads or changes anything", "[net]") {
  LocalRendezvous rendezvous(OverTcp(), {"a", "a"});
  rendezvous.on_service([](Service& service) {
    service.handle({"PUT", "/v1/kv/s/k", "secret"}, Service::TimePoint(), [](const Response&) {});
  });
  const nlohmann::json before = state_of(rendezvous);
  for (const Request& request : kEverything) {
    INFO(request.method << " " << request.target);
    check_refused(rendezvous, request.method + " " + request.target +
                                  " HTTP/1.1\r\nRunjob-Rank: 0\r\nContent-Length: " +
                                  std::to_string(request.body.size()) + "\r\n\r\n" + request.body);
    check_refused(rendezvous, SignedRequests::text(request, to_hex(sha256(request.body)), std::string(64, '0')));
  }
  CHECK(state_of(rendezvous) == before);
}

TEST_CASE("neither does one signed with another key, or after asking for a nonce only", "[net]") {
  LocalRendezvous rendezvous(OverTcp(), {"a", "a"});
  const nlohmann::json before = state_of(rendezvous);
  for (const Request& request : kEverything) {
    RawSocket socket = RawSocket::connect_to(rendezvous.port());
    SignedRequests member(socket, rendezvous.key());
    CHECK(socket.send(SignedRequests::text(request, to_hex(sha256(request.body)), to_hex(random_nonce()))));
    CHECK(socket.read_answer() == kRefusal);
  }
  RawSocket socket = RawSocket::connect_to(rendezvous.port());
  CHECK_THROWS_WITH(SignedRequests(socket, JobKey::random()), "the greeting is not signed");
  CHECK(state_of(rendezvous) == before);
}

TEST_CASE("the first ten refusals are logged with where they came from", "[net]") {
  int ends[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  UniqueFd reader(ends[0]), writer(ends[1]);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(writer.get(), STDERR_FILENO);
    log::configure(log::Level::kWarn, "");
    {
      LocalRendezvous rendezvous(OverTcp(), {"a"});
      for (int i = 0; i < 12; ++i) {
        RawSocket socket = RawSocket::connect_to(rendezvous.port());
        socket.send("GET /x\x1b[2J HTTP/1.1\r\n\r\nGET /v1/status HTTP/1.1\r\n\r\n");
        socket.read_answer();
        RawSocket other = RawSocket::connect_to(rendezvous.port());
        other.send("GET /v1/status HTTP/1.1\r\n\r\n");
        other.read_answer();
      }
    }
    ::_exit(0);
  }
  writer.reset();
  const std::string text = RawSocket(std::move(reader)).read_to_end();
  REQUIRE(::waitpid(child, nullptr, 0) == child);
  const std::string line = "runjob: warning: rendezvous: refused a request of 127.0.0.1 port ";
  CHECK(text.starts_with(line));
  CHECK_THAT(text, ContainsSubstring(": /v1/status is not signed with the job's key\n"));
  CHECK_THAT(text, !ContainsSubstring("\x1b"));
  CHECK_THAT(text, ContainsSubstring("runjob: warning: rendezvous: further refusals are not reported\n"));
  CHECK(std::count(text.begin(), text.end(), '\n') == 11);
}

TEST_CASE("signed requests are answered, and the answers are signed", "[net]") {
  LocalRendezvous rendezvous(OverTcp(), {"a"});
  RawSocket socket = RawSocket::connect_to(rendezvous.port());
  SignedRequests member(socket, rendezvous.key());
  std::string headers;
  CHECK(socket.send(member.next({"PUT", "/v1/kv/s/k", "value"})));
  CHECK(socket.read_answer(&headers) == "200 ");
  CHECK(member.is_signed({200, "", {}}, headers));
  CHECK(socket.send(member.next({"GET", "/v1/kv/s/k", ""})));
  CHECK(socket.read_answer(&headers) == "200 value");
  CHECK(member.is_signed({200, "application/octet-stream", "value"}, headers));
  CHECK(socket.send(member.next({"GET", "/v1/kv/s/none", ""})));
  const std::string missing = socket.read_answer(&headers);
  CHECK(missing == R"(404 {"error":"no key 'none' in scope 's'"})");
  CHECK(member.is_signed({404, "application/json", missing.substr(4)}, headers));
}

TEST_CASE("a request that was heard on the network cannot be sent again", "[net]") {
  LocalRendezvous rendezvous(OverTcp(), {"a"});
  RawSocket socket = RawSocket::connect_to(rendezvous.port());
  SignedRequests member(socket, rendezvous.key());
  const std::string heard = member.next({"PUT", "/v1/kv/s/k", "old"});
  CHECK(socket.send(heard));
  CHECK(socket.read_answer() == "200 ");
  check_refused(rendezvous, heard);
  RawSocket other = RawSocket::connect_to(rendezvous.port());
  SignedRequests other_member(other, rendezvous.key());
  CHECK(other.send(heard));
  CHECK(other.read_answer() == kRefusal);
  CHECK(socket.send(heard));
  CHECK(socket.read_answer() == kRefusal);
  socket.finish_sending();
  CHECK(socket.read_to_end() == "");
}

TEST_CASE("requests in another order, or with one left out, are refused", "[net]") {
  LocalRendezvous rendezvous(OverTcp(), {"a"});
  RawSocket socket = RawSocket::connect_to(rendezvous.port());
  SignedRequests member(socket, rendezvous.key());
  const std::string first = member.next({"PUT", "/v1/kv/s/k", "first"});
  const std::string second = member.next({"PUT", "/v1/kv/s/k", "second"});
  CHECK(socket.send(second + first));
  CHECK(socket.read_answer() == kRefusal);
  CHECK(state_of(rendezvous)["keys"] == 0);
}

TEST_CASE("a body that is not the one that was signed is refused, also a shorter one", "[net]") {
  LocalRendezvous rendezvous(OverTcp(), {"a"});
  const auto send = [&](const std::string& from, const std::string& to) {
    RawSocket socket = RawSocket::connect_to(rendezvous.port());
    SignedRequests member(socket, rendezvous.key());
    std::string text = member.next({"PUT", "/v1/kv/s/k", "value"});
    CHECK(socket.send(text.replace(text.find(from), from.size(), to)));
    socket.finish_sending();
    return socket.read_answer();
  };
  CHECK(send("\r\n\r\nvalue", "\r\n\r\nvalud") == kRefusal);
  CHECK(send("Content-Length: 5", "Content-Length: 4") == kRefusal);
  CHECK(send("Content-Length: 5", "Content-Length: 0") == kRefusal);
  CHECK(send("Content-Length: 5", "Content-Length: 6") == "hung up");
  CHECK(send("Content-Length: 5\r\n", "") == kRefusal);
  CHECK(send("PUT", "DELETE") == kRefusal);
  CHECK(send("/s/k", "/s/j") == kRefusal);
  CHECK(state_of(rendezvous)["keys"] == 0);
}

TEST_CASE("no body of a stranger is read", "[net]") {
  LocalRendezvous rendezvous(OverTcp(), {"a"});
  RawSocket stranger = RawSocket::connect_to(rendezvous.port());
  CHECK(stranger.send("PUT /v1/kv/s/k HTTP/1.1\r\nContent-Length: 16777216\r\n\r\n"));
  CHECK(stranger.read_answer() == kRefusal);  // before any of it has come
  RawSocket chunked = RawSocket::connect_to(rendezvous.port());
  CHECK(chunked.send("PUT /v1/kv/s/k HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"));
  CHECK(chunked.read_answer() == kRefusal);
  RawSocket half = RawSocket::connect_to(rendezvous.port());
  SignedRequests member(half, rendezvous.key());
  CHECK(half.send("PUT /v1/kv/s/k HTTP/1.1\r\nContent-Length: 16777216\r\n\r\n"));
  CHECK(half.read_answer() == kRefusal);
}

TEST_CASE("a member's bodies and headers have their bounds too", "[net]") {
  LocalRendezvous rendezvous(OverTcp(), {"a"});
  RawSocket socket = RawSocket::connect_to(rendezvous.port());
  SignedRequests member(socket, rendezvous.key());
  CHECK(socket.send(member.next({"PUT", "/v1/kv/s/k", std::string(kMaxBodyBytes, 'x')})));
  CHECK(socket.read_answer() == "200 ");
  const std::string too_large = member.next({"PUT", "/v1/kv/s/k", std::string(kMaxBodyBytes + 1, 'x')});
  CHECK(socket.send(too_large));
  CHECK(socket.read_answer() == R"(413 {"error":"the body is over the limit of 16777216 bytes"})");
  RawSocket headers = RawSocket::connect_to(rendezvous.port());
  CHECK(headers.send("GET /v1/session HTTP/1.1\r\nX: " + std::string(20000, 'x')));
  CHECK(headers.read_answer() == R"(431 {"error":"the headers are over the limit of 16384 bytes"})");
}

TEST_CASE("garbage on the port is refused or cut off, and the job goes on", "[net]") {
  LocalRendezvous rendezvous(OverTcp(), {"a", "a"});
  Client first(rendezvous.address(), 0, rendezvous.key_file());
  auto gathered = std::async(std::launch::async, [&] { return first.gather("x", "from 0", 60s); });
  CHECK(eventually([&] { return state_of(rendezvous)["open_gathers"] == 1; }));
  std::string noise;
  for (int i = 0; i < 4096; ++i) noise += static_cast<char>(i * 37 + i / 256);
  for (const std::string& bytes :
       {noise, std::string(100000, '\n'), std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11),
        std::string("SSH-2.0-OpenSSH_9.2\r\n"), std::string(64, '\0'), std::string("GET / HTTP/0.9\r\n\r\n"),
        std::string("POST /v1/gather/x HTTP/1.1\r\nContent-Length: -1\r\n\r\n")}) {
    RawSocket socket = RawSocket::connect_to(rendezvous.port());
    socket.send(bytes);
    socket.finish_sending();
    const std::string answer = socket.read_to_end();
    CHECK((answer.empty() || answer.starts_with("HTTP/1.1 4")));
  }
  Client second(rendezvous.address(), 1, rendezvous.key_file());
  CHECK(second.gather("x", "from 1", 60s) == std::vector<std::string>{"from 0", "from 1"});
  CHECK(gathered.get() == std::vector<std::string>{"from 0", "from 1"});
}

TEST_CASE("a stranger has a bounded time for all, a member's idle connection stays", "[net]") {
  HttpLimits limits;
  limits.message_timeout = 500ms;
  LocalRendezvous rendezvous(OverTcp(), {"a"}, 30s, limits);
  RawSocket member_socket = RawSocket::connect_to(rendezvous.port());
  SignedRequests member(member_socket, rendezvous.key());
  CHECK(member_socket.send(member.next({"GET", "/v1/kv/s/k", ""})));
  CHECK_THAT(member_socket.read_answer(), ContainsSubstring("404 "));
  RawSocket silent = RawSocket::connect_to(rendezvous.port());
  RawSocket slow = RawSocket::connect_to(rendezvous.port());
  RawSocket greeted = RawSocket::connect_to(rendezvous.port());
  const SignedRequests unproven(greeted, rendezvous.key());
  CHECK(slow.send("GET /v1/session HTTP/1.1\r\nX: "));
  while (slow.send("x")) {  // one byte after the other, until it is cut off
  }
  CHECK(silent.read_to_end() == "");
  CHECK(greeted.read_to_end() == "");
  CHECK(member_socket.is_open());
}

TEST_CASE("strangers make room for new connections, members do not", "[net]") {
  HttpLimits limits;
  limits.connections = 3;
  LocalRendezvous rendezvous(OverTcp(), {"a"}, 30s, limits);
  const auto join = [&](RawSocket& socket) {
    SignedRequests member(socket, rendezvous.key());
    return socket.send(member.next({"GET", "/v1/kv/s/k", ""})) && socket.read_answer().starts_with("404 ");
  };
  RawSocket first = RawSocket::connect_to(rendezvous.port());
  RawSocket oldest = RawSocket::connect_to(rendezvous.port());
  RawSocket older = RawSocket::connect_to(rendezvous.port());
  CHECK(join(first));
  RawSocket second = RawSocket::connect_to(rendezvous.port());
  CHECK(join(second));
  CHECK(oldest.read_to_end() == "");
  RawSocket third = RawSocket::connect_to(rendezvous.port());
  CHECK(join(third));
  CHECK(older.read_to_end() == "");
  RawSocket fourth = RawSocket::connect_to(rendezvous.port());
  CHECK(fourth.read_answer() == R"(503 {"error":"the limit of 3 connections is reached"})");
  CHECK(first.is_open());
}

TEST_CASE("a flood of strangers does not keep the ranks out", "[net]") {
  HttpLimits limits;
  limits.connections = 16;
  LocalRendezvous rendezvous(OverTcp(), {"a", "a"}, 30s, limits);
  std::vector<RawSocket> flood;
  for (int i = 0; i < 200; ++i) flood.push_back(RawSocket::connect_to(rendezvous.port()));
  Client first(rendezvous.address(), 0, rendezvous.key_file());
  Client second(rendezvous.address(), 1, rendezvous.key_file());
  auto waiting = std::async(std::launch::async, [&] { first.barrier("x", 60s); });
  for (int i = 0; i < 200; ++i) flood.push_back(RawSocket::connect_to(rendezvous.port()));
  second.barrier("x", 60s);
  waiting.get();
}
