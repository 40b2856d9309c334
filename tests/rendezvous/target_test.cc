#include "rendezvous/target.hpp"

#include "base/error.hpp"
#include "rendezvous/protocol.hpp"
#include "tests/catch.hpp"

using namespace runjob;
using namespace runjob::rendezvous;
using namespace std::chrono_literals;

TEST_CASE("a target is taken apart into names and parameters", "[unit]") {
  const Target target = parse_target("/v1/kv/a%2Fb/k%00%ff?wait=1.5");
  CHECK(target.path == std::vector<std::string>{"v1", "kv", "a/b", std::string("k\0\xff", 3)});
  CHECK(target.wait == 1500ms);
  CHECK_FALSE(target.count);
  const Target gather = parse_target("/v1/gather/x?count=4&index=0&wait=20ms&call=a.1");
  CHECK(gather.count == 4);
  CHECK(gather.index == 0);
  CHECK(gather.wait == 20ms);
  CHECK(gather.call == "a.1");
}

TEST_CASE("a malformed target is refused with what was expected", "[unit]") {
  const std::pair<std::string, std::string> bad[] = {
      {"", "expected a path that starts with '/', found ''"},
      {"v1/status", "expected a path that starts with '/', found 'v1/status'"},
      {"*", "expected a path that starts with '/', found '*'"},
      {"/", "the path has an empty segment"},
      {"/v1//x", "the path has an empty segment"},
      {"/v1/status/", "the path has an empty segment"},
      {"/v1/%", "expected two hex digits after '%', found ''"},
      {"/v1/%4", "expected two hex digits after '%', found '4'"},
      {"/v1/%4g", "expected two hex digits after '%', found '4g'"},
      {"/v1/%+1", "expected two hex digits after '%', found '+1'"},
      {"/v1/%-1", "expected two hex digits after '%', found '-1'"},
      {"/v1/x?", "unknown or repeated parameter ''"},
      {"/v1/x?wat=1", "unknown or repeated parameter 'wat'"},
      {"/v1/x?wait=1&wait=2", "unknown or repeated parameter 'wait'"},
      {"/v1/x?count=1&count=1", "parameter 'count' is given twice"},
      {"/v1/x?count=0", "count: '0' is not a whole number from 1 to 2147483647"},
      {"/v1/x?index=-1", "index: '-1' is not a whole number from 0 to 2147483647"},
      {"/v1/x?index", "index: '' is not a whole number from 0 to 2147483647"},
      {"/v1/x?wait=soon", "wait: 'soon' is not a time such as 30, 0.5, 500ms, 30s, 10m or 2h"},
      {"/v1/x?call=", "call: expected 1 to 512 bytes, found 0"},
      {"/v1/" + std::string(513, 'x'), "a name of 513 bytes is over the limit of 512"},
  };
  for (const auto& [text, message] : bad) {
    INFO(text);
    CHECK_THROWS_WITH(parse_target(text), message);
  }
}

TEST_CASE("every name survives percent-encoding", "[unit]") {
  std::string all_bytes;
  for (int i = 0; i < 256; ++i) all_bytes += static_cast<char>(i);
  CHECK(parse_target("/" + percent_encode(all_bytes)).path == std::vector<std::string>{all_bytes});
  CHECK(percent_encode("aZ9-._~/?%\xff") == "aZ9-._~%2F%3F%25%FF");
}
