#include "runtime/collectives/hierarchical/message_block.hpp"

#include "base/error.hpp"
#include "tests/catch.hpp"

using namespace runjob::runtime;

namespace {

using Texts = std::vector<std::pair<std::uint32_t, std::string>>;

std::string encode(const Texts& texts) {
  std::vector<RoundMessage> messages;
  for (const auto& [tag, text] : texts) messages.push_back({tag, std::as_bytes(std::span(text))});
  return encode_block(messages);
}

Texts take(std::string_view& bytes, std::size_t count, std::size_t most = 100) {
  Texts texts(count);
  take_block(bytes, count, most, [&](std::size_t index, const RoundMessage& message) {
    texts[index] = {message.tag, {reinterpret_cast<const char*>(message.bytes.data()), message.bytes.size()}};
  });
  return texts;
}

}  // namespace

TEST_CASE("messages come back as they were, block after block", "[runtime][unit]") {
  const Texts one{{1, "abc"}, {1, ""}, {2, ""}, {2, ""}, {2, "abc"}, {2, "abc"}, {3, "abc"}}, two{{0, "z"}};
  const std::string bytes = encode(one) + encode(two);
  std::string_view rest = bytes;
  CHECK(take(rest, one.size()) == one);
  CHECK(take(rest, two.size()) == two);
  CHECK(rest.empty());
}

TEST_CASE("a message like the one before it costs four bytes", "[runtime][unit]") {
  const std::string text(40, 'x');
  CHECK(encode({{5, text}, {5, text}, {5, text}}).size() == encode({{5, text}}).size() + 8);
}

TEST_CASE("a block that is cut off or has too long a message is refused", "[runtime][unit]") {
  const std::string bytes = encode({{1, "abc"}, {2, "def"}});
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    std::string_view part = std::string_view(bytes).substr(0, length);
    REQUIRE_THROWS_WITH(take(part, 2), ContainsSubstring("malformed"));
  }
  std::string_view whole = bytes;
  CHECK_THROWS_AS(take(whole, 2, 2), runjob::Error);
}
