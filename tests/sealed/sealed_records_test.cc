#include "sealed/sealed_records.hpp"

#include <string>
#include <vector>

#include "base/error.hpp"
#include "tests/catch.hpp"

using namespace runjob;

namespace {

SealKey key() {
  SealKey key;
  key.bytes().fill(9);
  return key;
}

std::string pattern(std::size_t size) {
  std::string text(size, '\0');
  for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>(i * 31 + i / 251);
  return text;
}

}  // namespace

TEST_CASE("a stream comes through whole, however it is cut", "[unit]") {
  const std::vector<std::string> texts = {"", "x", pattern(65'519), pattern(65'520), pattern(300'000), "", "end"};
  std::string sealed, expected;
  Sealer sealer(key());
  for (const std::string& text : texts) {
    sealer.seal(text, sealed);
    expected += text;
  }
  for (const std::size_t step : {std::size_t{1}, std::size_t{2}, std::size_t{17}, std::size_t{65'537}, sealed.size()}) {
    Opener opener(key());
    std::string opened;
    for (std::size_t at = 0; at < sealed.size(); at += step)
      opener.feed(std::string_view(sealed).substr(at, step), opened);
    CHECK((opened == expected));
    CHECK(opener.records() == 12);
  }
}

TEST_CASE("an empty text is a record, and half a record is nothing yet", "[unit]") {
  std::string sealed;
  Sealer(key()).seal("", sealed);
  CHECK(sealed.size() == 18);
  Opener opener(key());
  std::string opened;
  opener.feed(sealed.substr(0, 17), opened);
  CHECK(opener.records() == 0);
  opener.feed(sealed.substr(17), opened);
  CHECK(opener.records() == 1);
  CHECK(opened.empty());
}

TEST_CASE("changed, repeated, reordered and left out records are refused", "[unit]") {
  Sealer sealer(key());
  std::string first, second, opened;
  sealer.seal("first", first);
  sealer.seal("second", second);
  const auto check_refused = [&](const std::string& bytes) {
    Opener opener(key());
    CHECK_THROWS_WITH(opener.feed(bytes, opened),
                      "bytes on the connection that the other side has not sealed with the job's key");
  };
  for (std::size_t i = 2; i < first.size(); ++i) {
    std::string changed = first;
    changed[i] = static_cast<char>(changed[i] ^ 4);
    check_refused(changed);
  }
  check_refused(first + first);
  check_refused(second + first);
  check_refused(second);
  check_refused(std::string("\0\0", 2));
  check_refused(std::string("\0\x0f", 2) + std::string(15, 'x'));
  Opener other(SealKey{});
  CHECK_THROWS_AS(other.feed(first, opened), Error);
}
