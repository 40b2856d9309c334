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

TEST_CASE("a document that is nested deeply is an error, in every way that makes the parser call itself", "[unit]") {
  const auto nested = [](std::string_view piece, std::size_t times, std::string_view end = "") {
    std::string bytes;
    for (std::size_t i = 0; i < times; ++i) bytes += piece;
    return bytes.append(end);
  };
  CHECK(parse_cbor(nested("\x81", 31, "\x80")).dump() == nested("[", 32) + nested("]", 32));
  CHECK_THROWS_WITH(parse_cbor(nested("\x81", 32, "\x80")),
                    ContainsSubstring("at byte 33: the document is nested more than 32 levels deep"));
  constexpr std::size_t kMany = 200'000;
  const std::string null_byte(1, '\0');
  for (const std::string& piece :
       {std::string("\x81"), std::string("\xa1\x61k"), std::string("\x82\x01"), "\x99" + null_byte + "\x02",
        "\x9b" + std::string(8, '\xff'), "\xbb" + std::string(8, '\xff') + "\x61k"}) {
    CHECK_THROWS_WITH(parse_cbor(nested(piece, kMany)), ContainsSubstring("levels deep"));
  }
  for (const char* piece : {"\x9f", "\xbf\x61k", "\x5f", "\x7f", "\x7f\x60", "\x81\x7f\x61k"}) {
    INFO(piece);
    CHECK_THROWS_WITH(parse_cbor(nested(piece, kMany)), ContainsSubstring("an item has no length"));
  }
  CHECK_THROWS_AS(parse_cbor(nested("\xc0", kMany)), json::exception);
}

TEST_CASE("documents of every form of CBOR are read as before", "[unit]") {
  std::string text;
  for (const std::size_t size : {0, 1, 23, 24, 255, 256, 65535, 65536}) {
    json document = {{"list", json::array()},
                     {"text", std::string(size, 'x')},
                     {"bytes", json::binary(std::vector<std::uint8_t>(size))}};
    for (std::size_t i = 0; i < size; ++i) document["list"].push_back(i);
    for (std::size_t i = 0; i < std::min<std::size_t>(size, 300); ++i)
      document[std::to_string(i)] = {1.5, -1, true, nullptr, 1e300, -70000};
    CHECK(parse_cbor(cbor_bytes(document)) == document);
    const std::string bytes = cbor_bytes(document);
    CHECK_THROWS_AS(parse_cbor(bytes.substr(0, bytes.size() - 1)), json::exception);
    CHECK_THROWS_AS(parse_cbor(bytes + "x"), json::exception);
  }
}

TEST_CASE("bytes that are not UTF-8 are replaced", "[unit]") {
  CHECK(json_text("a\xff") == "\"a\xef\xbf\xbd\"");
  CHECK(ordered_json_text("a\xff") == "\"a\xef\xbf\xbd\"");
}
