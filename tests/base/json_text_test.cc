#include "base/json_text.hpp"

#include <nlohmann/json.hpp>

#include "tests/catch.hpp"

using namespace runjob;
using nlohmann::json;

TEST_CASE("a document is the same after text and after CBOR", "[unit]") {
  const json document = {{"name", "node-1"}, {"ranks", {0, 1, 2}}, {"bytes", json::binary({0, 255})}};
  CHECK(parse_cbor(cbor_bytes(document)) == document);
  const json text_only = {{"name", "node-1"}, {"ranks", {0, 1, 2}}};
  CHECK(parse_json(json_text(text_only)) == text_only);
  CHECK(json_text(text_only) == R"({"name":"node-1","ranks":[0,1,2]})");
  CHECK(strict_json_text(text_only) == json_text(text_only));
  CHECK(ordered_json_text({{"b", 1}, {"a", 2}}, 2) == "{\n  \"b\": 1,\n  \"a\": 2\n}");
}

TEST_CASE("text that is not a document is an error, or a discarded document", "[unit]") {
  for (const char* bad : {"", "{", "{} {}", "{\"a\":}"}) {
    INFO(bad);
    CHECK_THROWS_AS(parse_json(bad), json::exception);
    CHECK(try_parse_json(bad).is_discarded());
    CHECK_THROWS_AS(parse_cbor(bad), json::exception);
  }
}

TEST_CASE("bytes that are not UTF-8 are replaced, or refused", "[unit]") {
  CHECK(json_text("a\xff") == "\"a\xef\xbf\xbd\"");
  CHECK(ordered_json_text("a\xff") == "\"a\xef\xbf\xbd\"");
  CHECK_THROWS_AS(strict_json_text("a\xff"), json::exception);
}
