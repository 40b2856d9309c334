/// Feeds any bytes to the HTTP parser of both ends of the rendezvous. The first byte chooses: 's' takes the rest for a
/// response, anything else for a request, in pieces whose size is the second byte. The pieces make no difference, and
/// no limit is exceeded.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "rendezvous/http_message.hpp"

using namespace runjob::rendezvous;

namespace {

constexpr std::uint32_t kMostHead = 512;
constexpr std::uint64_t kMostBody = 256;

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::abort();
}

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
      require(parser.state() >= before, "a state does not go back");
      require(received.size() <= unused, "parsing adds no bytes");
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

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const auto kind = data[0] == 's' ? HttpParser::Kind::kResponse : HttpParser::Kind::kRequest;
  const std::size_t piece = std::max<std::size_t>(1, data[1]);
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
  const Parsed whole = parse(kind, bytes, std::max<std::size_t>(1, bytes.size()));
  const Parsed parts = parse(kind, bytes, piece);
  for (const Parsed* each : {&whole, &parts}) {
    require(each->body.size() <= kMostBody, "a body is within its limit");
    require(each->state == HttpParser::State::kBroken || bytes_of(each->head) <= kMostHead,
            "a head is within its limit");
  }
  if (whole.state != HttpParser::State::kComplete && parts.state != HttpParser::State::kComplete) return 0;
  require(whole.state == parts.state, "pieces of a whole message are a whole message");
  require(whole.head.method == parts.head.method && whole.head.target == parts.head.target, "the same request");
  require(whole.head.status == parts.head.status && whole.head.headers == parts.head.headers, "the same headers");
  require(whole.body == parts.body && whole.rest == parts.rest, "the same body");
  return 0;
}
