#include "rendezvous/http_message.hpp"

#include <string>

#include "tests/catch.hpp"

using namespace runjob::rendezvous;
using State = HttpParser::State;
using Failure = HttpParser::Failure;

namespace {

/// Gives `text` to `parser` in blocks of `block` bytes, as a slow network would. Returns what the parser has not used.
std::string parse_in_blocks(HttpParser& parser, const std::string& text, std::size_t block) {
  std::string received;
  for (std::size_t at = 0; at < text.size(); at += block) {
    received += text.substr(at, block);
    parser.parse(received);  // at most up to the end of the head
    if (parser.state() == State::kBody) parser.parse(received);
  }
  return received;
}

HttpParser request_parser() {
  return HttpParser(HttpParser::Kind::kRequest, 1000, 100);
}

}  // namespace

TEST_CASE("a request is the same however its bytes arrive", "[unit]") {
  for (const std::size_t block : {std::size_t{1}, std::size_t{7}, std::size_t{1000}}) {
    INFO(block);
    HttpParser parser = request_parser();
    const std::string rest = parse_in_blocks(
        parser, "PUT /v1/kv/s/k?wait=1 HTTP/1.1\r\nHost: a\r\nrunjob-rank:  3 \r\nContent-Length: 5\r\n\r\nvaluenext",
        block);
    CHECK(rest == "next");
    CHECK(parser.state() == State::kComplete);
    CHECK(parser.head().method == "PUT");
    CHECK(parser.head().target == "/v1/kv/s/k?wait=1");
    CHECK(parser.head().version == 11);
    CHECK(parser.head().keep_alive);
    CHECK(parser.head().value_of("Runjob-Rank") == "3");
    CHECK_FALSE(parser.head().find("Runjob-Mac"));
    CHECK(parser.take_body() == "value");
  }
}

TEST_CASE("a head can be judged before its body is parsed", "[unit]") {
  HttpParser parser = request_parser();
  std::string received = "POST /x HTTP/1.0\r\nContent-Length: 4\r\n\r\nbody";
  parser.parse(received);
  CHECK(parser.state() == State::kBody);
  CHECK(received == "body");
  CHECK_FALSE(parser.head().keep_alive);
}

TEST_CASE("a chunked body is put together, and its trailers do not become headers", "[unit]") {
  for (const std::size_t block : {std::size_t{1}, std::size_t{1000}}) {
    HttpParser parser = request_parser();
    parse_in_blocks(parser,
                    "POST /x HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
                    "3\r\nabc\r\n2;extension=1\r\nde\r\n0\r\nRunjob-Rank: 7\r\n\r\n",
                    block);
    CHECK(parser.state() == State::kComplete);
    CHECK_FALSE(parser.head().find("Runjob-Rank"));
    CHECK(parser.take_body() == "abcde");
  }
}

TEST_CASE("a message over its bounds is refused, and the reason is known", "[unit]") {
  const auto failure_of = [](const std::string& text) {
    HttpParser parser = request_parser();
    parse_in_blocks(parser, text, 10);
    CHECK(parser.state() == State::kBroken);
    return parser.failure();
  };
  CHECK(failure_of("PUT /x HTTP/1.1\r\nContent-Length: 101\r\n\r\n") == Failure::kBodyTooLarge);
  CHECK(failure_of("PUT /x HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n65\r\n") == Failure::kBodyTooLarge);
  CHECK(failure_of("GET /x HTTP/1.1\r\nX: " + std::string(1000, 'x')) == Failure::kHeadTooLarge);
  std::string many = "GET /x HTTP/1.1\r\n";
  while (many.size() < 1100) many += "X: y\r\n";
  CHECK(failure_of(many + "\r\n") == Failure::kHeadTooLarge);
  CHECK(failure_of("hello\r\n\r\n") == Failure::kMalformed);
  CHECK(failure_of("GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n") == Failure::kMalformed);
}

TEST_CASE("only a response without a length is completed by the end of its connection", "[unit]") {
  const auto state_at_end = [](std::string received) {
    HttpParser parser(HttpParser::Kind::kResponse, 1000, 100);
    parser.parse(received);
    parser.parse(received);
    parser.end();
    return parser.state();
  };
  CHECK(state_at_end("HTTP/1.1 200 OK\r\n\r\nall of it") == State::kComplete);
  CHECK(state_at_end("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhalf") == State::kBody);
  CHECK(state_at_end("HTTP/1.1 200 OK\r\nConte") == State::kHead);
  CHECK(state_at_end("") == State::kHead);
}

TEST_CASE("a head that was written is parsed to the same values", "[unit]") {
  HttpParser request = request_parser();
  std::string text = request_head({"GET", "/v1/kv/s/k", "", 3}, "node-1", {{kMacHeader, "ab"}});
  CHECK(text == "GET /v1/kv/s/k HTTP/1.1\r\nHost: node-1\r\nRunjob-Rank: 3\r\nRunjob-Mac: ab\r\n\r\n");
  CHECK(request_head({"PUT", "/v1/kv/s/k", "", -1}, "node-1", {}) ==
        "PUT /v1/kv/s/k HTTP/1.1\r\nHost: node-1\r\nContent-Length: 0\r\n\r\n");
  request.parse(text);
  CHECK(request.state() == State::kComplete);
  CHECK(request.head().value_of(kMacHeader) == "ab");

  HttpParser response(HttpParser::Kind::kResponse, 1000, 100);
  text = response_head({404, "text/plain", "none"}, {{kMacHeader, "cd"}}, 11, false) + "none";
  response.parse(text);
  response.parse(text);
  CHECK(response.state() == State::kComplete);
  CHECK(response.head().status == 404);
  CHECK_FALSE(response.head().keep_alive);
  CHECK(response.head().value_of("content-type") == "text/plain");
  CHECK(response.take_body() == "none");
  CHECK(response_head({200, "", ""}, {}, 10, true) ==
        "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n");
}
