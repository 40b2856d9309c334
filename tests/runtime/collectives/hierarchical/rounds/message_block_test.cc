#include "runtime/collectives/hierarchical/rounds/message_block.hpp"

#include <algorithm>
#include <cstring>

#include "base/error.hpp"
#include "tests/catch.hpp"
#include "tests/runtime/collectives/hierarchical/rounds/whole_block.hpp"
#include "tests/thrown.hpp"

using namespace runjob::runtime;

namespace {

using Texts = std::vector<std::pair<std::uint32_t, std::string>>;

std::string encode(const Texts& texts) {
  std::vector<RoundMessage> messages;
  for (const auto& [tag, text] : texts) messages.push_back({tag, std::as_bytes(std::span(text))});
  return whole_block(messages);
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

TEST_CASE("the data of a block's last message are lent, unless it is short, in parts or like the one before it",
          "[runtime][unit]") {
  const std::string text(5000, 'x'), divided(6000, 'y'), short_text(40, 'z');
  const RoundMessage plain{.tag = 1, .bytes = std::as_bytes(std::span(text))};
  const RoundMessage in_parts{.tag = 2,
                              .bytes = std::as_bytes(std::span(divided)).first(5000),
                              .unread = 5,
                              .rest = std::as_bytes(std::span(divided)).last(15)};
  const RoundMessage brief{.tag = 3, .bytes = std::as_bytes(std::span(short_text))};
  using Messages = std::vector<RoundMessage>;
  for (const auto& [messages, lent] : {std::pair{Messages{plain}, text.data()},
                                       {{in_parts, plain}, text.data()},
                                       {{plain, in_parts}, nullptr},
                                       {{plain, plain}, nullptr},
                                       {{plain, brief}, nullptr},
                                       {{}, nullptr}}) {
    const LentBlock block = encode_block(messages, false, "bytes that were there before");
    CHECK(static_cast<const void*>(block.data.data()) == lent);
    const std::string whole = block.text + std::string(block.data);
    std::string_view left = whole;
    take_block(left, messages.size(), 10000, [&, &sent = messages](std::size_t index, const RoundMessage& taken) {
      CHECK((taken.tag == sent[index].tag && taken.unread == sent[index].unread));
      CHECK(std::ranges::equal(taken.bytes, sent[index].bytes));
      CHECK(std::ranges::equal(taken.rest, sent[index].rest));
    });
    CHECK(left.empty());
  }
}

TEST_CASE("a message like the one before it costs four bytes", "[runtime][unit]") {
  const std::string text(40, 'x');
  CHECK(encode({{5, text}, {5, text}, {5, text}}).size() == encode({{5, text}}).size() + 8);
}

TEST_CASE("ages come back with the time added that a block has lain, and a block has none unless it is asked to",
          "[unit]") {
  const std::string text = "abc";
  const RoundMessage message{7, std::as_bytes(std::span(text)), 40};
  RoundMessage later = message;
  later.age_us = ~std::uint32_t{0} - 3;
  std::string bytes = whole_block({message, later}, /*with_ages=*/true);
  const std::size_t size = bytes.size();
  bytes += whole_block({message});
  CHECK(has_ages(bytes));
  add_age(bytes.data(), 2, 60);
  add_age(bytes.data() + size, 1, 60);
  std::vector<std::uint32_t> ages;
  const auto put = [&](std::size_t, const RoundMessage& taken) {
    CHECK(taken.tag == 7);
    ages.push_back(taken.age_us);
  };
  std::string_view rest = bytes;
  CHECK(take_block(rest, 2, 100, put));
  CHECK_FALSE(take_block(rest, 1, 100, put));
  CHECK(ages == std::vector<std::uint32_t>{100, ~std::uint32_t{0}, 0});
  CHECK(age_us(5'000, 12'900) == 7);
  CHECK(age_us(12'900, 5'000) == 0);
}

TEST_CASE("a block that is cut off or has too long a message is refused", "[runtime][unit]") {
  const std::string bytes = encode({{1, "abc"}, {2, "def"}});
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    std::string_view part = std::string_view(bytes).substr(0, length);
    REQUIRE_THROWS_WITH(take(part, 2), ContainsSubstring("malformed"));
  }
  std::string aged = whole_block({{}, {}}, /*with_ages=*/true);
  std::string_view part = std::string_view(aged).substr(0, 8);
  REQUIRE_THROWS_WITH(take(part, 2), ContainsSubstring("malformed"));
  std::string_view whole = bytes;
  CHECK_THROWS_AS(take(whole, 2, 2), runjob::Error);
}

TEST_CASE("what no other rank reads of a message is not in its block", "[runtime][unit]") {
  const std::string begin = "begin", end = "the end";
  const RoundMessage divided{
      .tag = 9, .bytes = std::as_bytes(std::span(begin)), .unread = 50, .rest = std::as_bytes(std::span(end))};
  const RoundMessage whole{.tag = 9, .bytes = std::as_bytes(std::span(begin))};
  const std::string bytes = whole_block({divided, divided, whole});
  CHECK(bytes.size() < 100);
  std::string_view rest = bytes;
  std::vector<RoundMessage> taken;
  take_block(rest, 3, 62, [&](std::size_t, const RoundMessage& message) { taken.push_back(message); });
  REQUIRE(taken.size() == 3);
  for (const int i : {0, 1}) {
    const RoundMessage& message = taken[static_cast<std::size_t>(i)];
    CHECK((message.size() == 62 && message.unread == 50));
    CHECK(std::equal(message.bytes.begin(), message.bytes.end(), divided.bytes.begin(), divided.bytes.end()));
    CHECK(std::equal(message.rest.begin(), message.rest.end(), divided.rest.begin(), divided.rest.end()));
  }
  CHECK((taken[2].size() == begin.size() && taken[2].unread == 0 && taken[2].rest.empty()));
  rest = bytes;
  const auto refuses = [&](std::size_t count, std::size_t most) {
    const auto refused =
        runjob::thrown([&] { take_block(rest, count, most, [](std::size_t, const RoundMessage&) {}); });
    return refused.first == runjob::Errc::kProtocol;
  };
  CHECK(refuses(3, 61));
  for (const std::uint32_t wrong : {13u, 0xffffffffu}) {  // the begin of the unread part, in a message of 12 bytes
    std::string malformed = whole_block({{.tag = 9, .bytes = std::as_bytes(std::span(begin)), .unread = 7}});
    std::memcpy(malformed.data() + 8, &wrong, sizeof wrong);
    rest = malformed;
    CHECK(refuses(1, 100));
  }
}
