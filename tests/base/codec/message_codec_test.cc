#include "base/codec/message_codec.hpp"

#include <cstdint>

#include "tests/catch.hpp"

using namespace runjob;

namespace {

enum class Colour : std::uint8_t { kRed, kBlue };

constexpr Colour last(Colour) {
  return Colour::kBlue;
}

/// A type that is one value of a document.
struct Point {
  int x = 0, y = 0;

  bool operator==(const Point&) const = default;
};

nlohmann::json to_document(const Point& point) {
  return {point.x, point.y};
}

void from_document(const nlohmann::json& value, Point& point) {
  point = {json_integer<int>(value.at(0)), json_integer<int>(value.at(1))};
}

struct Part {
  std::uint8_t number = 0;

  bool operator==(const Part&) const = default;
};

void fields(auto& io, Is<Part> auto& m) {
  io("number", m.number);
}

void check(const Part& m) {
  if (m.number == 13) throw Error(Errc::kProtocol, "13 brings bad luck");
}

struct Whole {
  bool flag = false;
  double seconds = 0;
  std::string bytes;
  Colour colour = Colour::kRed;
  Point point;
  Environment environment;
  std::vector<Part> parts;
  std::vector<std::string> texts;
  std::optional<Part> perhaps;
  int later = 7;

  bool operator==(const Whole&) const = default;
};

void fields(auto& io, Is<Whole> auto& m) {
  io("flag", m.flag);
  io("seconds", m.seconds);
  io("bytes", m.bytes);
  io("colour", m.colour);
  io("point", m.point);
  io("environment", m.environment);
  io("parts", m.parts);
  io("texts", m.texts);
  io("perhaps", m.perhaps);
  io.optional("later", m.later);
}

Whole sample() {
  return {true, 0.5, "text", Colour::kBlue, {3, -4}, {{"A", "1"}, {"B", ""}}, {{1}, {255}}, {"", "x"}, Part{2}, 0};
}

Whole decode(const nlohmann::json& document) {
  return decode_cbor<Whole>(cbor_bytes(document), "the whole of rank 3 is malformed");
}

}  // namespace

TEST_CASE("a message comes back from CBOR and from JSON as it was", "[unit]") {
  Whole whole = sample();
  CHECK(decode_json<Whole>(encode_json(whole), "x") == whole);
  whole.bytes = std::string("\0\xff", 2);
  whole.environment["\xfe"] = "\xff";
  whole.texts.emplace_back("\x80");
  CHECK(decode_cbor<Whole>(encode_cbor(whole), "x") == whole);
  whole.perhaps.reset();
  CHECK(decode_cbor<Whole>(encode_cbor(whole), "x") == whole);
  CHECK(decode_cbor<std::vector<Part>>(encode_cbor(whole.parts), "x") == whole.parts);
}

TEST_CASE("a field that a sender leaves out keeps its value, and one that is not known is ignored", "[unit]") {
  nlohmann::json document = FieldWriter::json_of(sample());
  document.erase("later");
  document.erase("perhaps");
  document["newer"] = {1, 2};
  CHECK(decode(document).later == 7);
  CHECK_FALSE(decode(document).perhaps);
}

TEST_CASE("an error names the message, the field and the reason", "[unit]") {
  struct Case {
    const char* pointer;
    nlohmann::json value;
    const char* reason;
  };
  const std::vector<Case> cases = {
      {"/flag", 1, "flag: type must be boolean, but is number"},
      {"/seconds", "1", "seconds: type must be number, but is string"},
      {"/bytes", 1, "bytes: type must be string, but is number"},
      {"/colour", 2, "colour: 2 is unknown"},
      {"/colour", -1, "colour: -1 is unknown"},
      {"/point", {1}, "point: array index 1 is out of range"},
      {"/environment", 5, "environment: cannot use at() with number"},
      {"/parts", "x", "parts: string stands where a list is expected"},
      {"/parts/1", 5, "parts: number stands where fields are expected"},
      {"/parts/1/number", 256, "parts: number: 256 is out of range"},
      {"/parts/1/number", 1.5, "parts: number: a number stands where an integer is expected"},
      {"/parts/1/number", 13, "parts: 13 brings bad luck"},
      {"/parts/1", nlohmann::json::object(), "parts: number is missing"},
      {"/perhaps", nullptr, "perhaps: null stands where fields are expected"},
      {"/later", 1LL << 40, "later: 1099511627776 is out of range"},
  };
  for (const Case& each : cases) {
    INFO(each.reason);
    nlohmann::json document = FieldWriter::json_of(sample());
    document[nlohmann::json::json_pointer(each.pointer)] = each.value;
    CHECK_THROWS_WITH(decode(document), std::string("the whole of rank 3 is malformed: ") + each.reason);
  }
  CHECK_THROWS_WITH(decode(nlohmann::json::array()),
                    "the whole of rank 3 is malformed: array stands where fields are expected");
  CHECK_THROWS_WITH(decode_json<Whole>("{", "its text is malformed"),
                    ContainsSubstring("its text is malformed: parse error at line 1, column 2: "));
}

TEST_CASE("bytes that are no document of a bounded depth are refused", "[unit]") {
  const std::string good = encode_cbor(sample());
  for (const std::string& bytes : {std::string(), good + "x", good.substr(0, good.size() - 1), std::string("\xff")})
    CHECK_THROWS_WITH(decode_cbor<Whole>(bytes, "it is malformed"), ContainsSubstring("it is malformed: "));
  CHECK_THROWS_WITH(decode_cbor<Whole>(std::string(200'000, '\x81'), "it is malformed"),
                    ContainsSubstring("levels deep"));
}
