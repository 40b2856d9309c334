/// Feeds any bytes to the HTTP parser of both ends of the rendezvous. The first byte chooses: 's' takes the rest for a
/// response, anything else for a request, in pieces whose size is the second byte. The pieces make no difference, and
/// no limit is exceeded.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "rendezvous/http_message.hpp"
#include "tests/fuzz.hpp"

using namespace runjob::rendezvous;

namespace {

constexpr std::uint32_t kMostHead = 512;
constexpr std::uint64_t kMostBody = 256;

/// What a parser has made of the bytes.
struct Parsed {
  HttpParser::State state;
  HttpHead head;
  std::string body;
  std::string rest;  // not used
};

Parsed parse(HttpParser::Kind kind, std::string_view bytes, std::size_t piece) {
  HttpParser parser(kind, kMostHead, kMostBody);
  std::string received;
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    received += bytes.substr(at, piece);
    HttpParser::State before = parser.state();
    for (;;) {  // it stops behind the head
      const std::size_t unused = received.size();
      parser.parse(received);
      require(parser.state() >= before);
      require(received.size() <= unused);
      if (parser.state() == before) break;
      before = parser.state();
    }
  }
  if (parser.state() == HttpParser::State::kBody) parser.end();
  return {parser.state(), parser.head(), parser.take_body(), received};
}

std::size_t bytes_of(const HttpHead& head) {
  std::size_t bytes = head.method.size() + head.target.size();
  for (const auto& [name, value] : head.headers) bytes += name.size() + value.size();
  return bytes;
}

}  // namespace

void fuzz(std::string_view input) {
  if (input.size() < 2) return;
  const auto kind = input[0] == 's' ? HttpParser::Kind::kResponse : HttpParser::Kind::kRequest;
  const std::size_t piece = std::max<std::size_t>(1, static_cast<unsigned char>(input[1]));
  const std::string_view bytes = input.substr(2);
  const Parsed whole = parse(kind, bytes, std::max<std::size_t>(1, bytes.size()));
  const Parsed parts = parse(kind, bytes, piece);
  for (const Parsed* each : {&whole, &parts}) {
    require(each->body.size() <= kMostBody);
    require(each->state == HttpParser::State::kBroken || bytes_of(each->head) <= kMostHead);
  }
  if (whole.state != HttpParser::State::kComplete && parts.state != HttpParser::State::kComplete) return;
  require(whole.state == parts.state);
  require(whole.head.method == parts.head.method && whole.head.target == parts.head.target);
  require(whole.head.status == parts.head.status && whole.head.headers == parts.head.headers);
  require(whole.body == parts.body && whole.rest == parts.rest);
}
