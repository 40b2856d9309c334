#include "rendezvous/http_connection.hpp"

#include <functional>
#include <future>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "tests/catch.hpp"
#include "tests/rendezvous/local_rendezvous.hpp"
#include "tests/rendezvous/raw_socket.hpp"
#include "tests/rendezvous/scripted_server.hpp"

using namespace runjob;
using namespace runjob::rendezvous;
using namespace std::chrono_literals;

namespace {

const Request kGet{"GET", "/v1/kv/s/k", "", 3};

HttpConnection::TimePoint in(std::chrono::milliseconds time) {
  return std::chrono::steady_clock::now() + time;
}

const JobKey kKey = JobKey::random();

/// Adds the nonce's exchange before what a step does.
ScriptedServer::Step greeted(const std::function<void(RawSocket&, SignedAnswers&)>& step) {
  return [step](RawSocket socket) {
    SignedAnswers answers(socket, kKey);
    step(socket, answers);
  };
}

void answer_one(SignedAnswers& answers, const std::string& body) {
  answers.read_request(kGet.target, kGet.process);
  answers.send(answers.answer(body), answers.sign(answers.answer(body)));
}

}  // namespace

TEST_CASE("addresses are taken apart strictly", "[unit]") {
  CHECK(HttpConnection("unix:/tmp/x").address() == "unix:/tmp/x");
  for (const char* good : {"unix:/tmp/x", "http://127.0.0.1:80", "http://[::1]:65535", "http://node-1:8080"})
    CHECK(HttpConnection(good, kKey).address() == good);
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

TEST_CASE("over a network there is no connection without a key", "[unit]") {
  CHECK_THROWS_WITH(HttpConnection("http://node-1:8080"),
                    "rendezvous address 'http://node-1:8080': over a network the job's key is needed; "
                    "RUNJOB_JOB_KEY_FILE must name its file");
}

TEST_CASE("requests go over TCP too, to a number or a name, on one connection", "[net]") {
  std::string request;
  ScriptedServer server({greeted([&request](RawSocket&, SignedAnswers& answers) {
    request = answers.read_request(kGet.target, kGet.process);
    answers.send(answers.answer("first"), answers.sign(answers.answer("first")));
    answer_one(answers, "second");
  })});
  HttpConnection connection("http://localhost:" + server.port(), kKey);
  CHECK(connection.exchange(kGet, in(30s)).body.str() == "first");
  CHECK(connection.exchange(kGet, in(30s)).body.str() == "second");
  server.finish();
  CHECK(request.starts_with("GET /v1/kv/s/k HTTP/1.1\r\nHost: localhost\r\nRunjob-Rank: 3\r\n"));
}

TEST_CASE("a connection that broke is made anew once, without the caller noticing", "[net]") {
  ScriptedServer server(
      {greeted([](RawSocket&, SignedAnswers& answers) { answers.read_request(kGet.target, kGet.process); }),
       greeted([](RawSocket&, SignedAnswers& answers) { answer_one(answers, "first"); }),
       [](RawSocket) {},  // breaks before the nonce
       greeted([](RawSocket&, SignedAnswers& answers) { answer_one(answers, "second"); })});
  HttpConnection connection(server.address(), kKey);
  CHECK(connection.exchange(kGet, in(30s)).body.str() == "first");
  CHECK_THROWS_WITH(connection.exchange(kGet, in(30s)), ContainsSubstring("connection lost twice: "));
  CHECK(connection.exchange(kGet, in(30s)).body.str() == "second");
}

TEST_CASE("a connection that breaks twice is an error that says so", "[net]") {
  const ScriptedServer::Step cut = greeted([](RawSocket& socket, SignedAnswers& answers) {
    answers.read_request(kGet.target, kGet.process);
    socket.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf");
  });
  ScriptedServer server({cut, cut});
  HttpConnection connection(server.address(), kKey);
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
  ScriptedServer server({greeted([&seen](RawSocket&, SignedAnswers& answers) {
    answer_one(answers, "first");
    seen.get_future().wait();
  })});
  HttpConnection connection(server.address(), kKey);
  CHECK(connection.exchange(kGet, in(30s)).body.str() == "first");
  try {
    connection.exchange(kGet, in(20ms));
    FAIL_CHECK("nothing was thrown");
  } catch (const Error& error) {
    CHECK(error.code() == Errc::kTimeout);
    CHECK(error.what() == "rendezvous " + server.address() + ": no answer to GET /v1/kv/s/k in time");
  }
  seen.set_value();
}

TEST_CASE("an answer that the job's rendezvous did not give to this request is refused", "[net]") {
  const auto check_refused = [](const std::function<void(SignedAnswers&)>& answer) {
    ScriptedServer server({greeted([&](RawSocket&, SignedAnswers& answers) {
      answer_one(answers, "first");
      answer(answers);
    })});
    HttpConnection connection(server.address(), kKey);
    CHECK(connection.exchange(kGet, in(30s)).body.str() == "first");
    try {
      connection.exchange(kGet, in(30s));
      FAIL_CHECK("nothing was thrown");
    } catch (const Error& error) {
      CHECK(error.code() == Errc::kAuth);
      CHECK(error.what() == "rendezvous " + server.address() +
                                ": GET /v1/kv/s/k: the answer (status 200) is not signed with the job's key; is this "
                                "the job's own rendezvous?");
    }
  };
  check_refused([](SignedAnswers& answers) {  // unsigned
    answers.read_request(kGet.target, kGet.process);
    answers.send(answers.answer("second"), "");
  });
  check_refused([](SignedAnswers& answers) {  // changed
    answers.read_request(kGet.target, kGet.process);
    answers.send(answers.answer("other"), answers.sign(answers.answer("second")));
  });
  check_refused([](SignedAnswers& answers) {  // another status
    answers.read_request(kGet.target, kGet.process);
    answers.send(answers.answer("second"), answers.sign({404, "text/plain", "second"}));
  });
  check_refused([](SignedAnswers& answers) {  // repeated
    const std::string mac_of_first = answers.sign(answers.answer("first"));
    answers.read_request(kGet.target, kGet.process);
    answers.send(answers.answer("first"), mac_of_first);
  });
}

TEST_CASE("nothing is sent to a server that does not hold the key", "[net]") {
  std::string received;
  ScriptedServer server({[&received](RawSocket socket) {
    SignedAnswers answers(socket, JobKey::random());
    received = socket.read_to_end();
  }});
  CHECK_THROWS_WITH(HttpConnection(server.address(), kKey).exchange(kGet, in(30s)),
                    "rendezvous " + server.address() +
                        ": GET /v1/session: the answer (status 200) is not signed with the job's key; is this the "
                        "job's own rendezvous?");
  server.finish();
  CHECK(received == "");
}

TEST_CASE("a refusal is reported by its status, and nobody's text is believed", "[net]") {
  const auto refusing = [](const std::string& status) -> ScriptedServer::Step {
    return [status](RawSocket socket) {
      socket.read_until("\r\n\r\n");
      socket.send("HTTP/1.1 " + status + " x\r\nContent-Length: 3\r\n\r\nlie");
    };
  };
  ScriptedServer server({refusing("401"), refusing("503")});
  HttpConnection connection(server.address(), kKey);
  CHECK_THROWS_WITH(connection.exchange(kGet, in(30s)),
                    "rendezvous " + server.address() +
                        ": GET /v1/session: refused with status 401; RUNJOB_JOB_KEY_FILE must name the key of this "
                        "job");
  try {
    connection.exchange(kGet, in(30s));
    FAIL_CHECK("nothing was thrown");
  } catch (const Error& error) {
    CHECK(error.code() == Errc::kUnavailable);
    CHECK(error.what() == "rendezvous " + server.address() + ": it has no room for another connection");
  }
}

TEST_CASE("a key is used on a Unix socket too, where there is a server that knows it", "[net]") {
  LocalRendezvous without({"a"});
  HttpConnection connection(without.address(), kKey);
  CHECK_THROWS_WITH(connection.exchange(kGet, in(30s)), ContainsSubstring("is not signed with the job's key"));
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
  HttpConnection refused("http://127.0.0.1:" + port, kKey);
  CHECK_THROWS_WITH(refused.exchange(kGet, in(30s)), "rendezvous http://127.0.0.1:" + port +
                                                         ": cannot connect: Connection refused; is the job still "
                                                         "running?");
  HttpConnection unknown("http://no-such-host.invalid:1", kKey);
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
