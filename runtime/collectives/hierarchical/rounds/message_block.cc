#include "runtime/collectives/hierarchical/rounds/message_block.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.hpp"

namespace runjob::runtime {
namespace {

using Word = std::uint32_t;
constexpr Word kSame = ~Word{0};
constexpr Word kUnread = Word{1} << 31;  // in a length: begin and length of the unread part follow the tag
constexpr Word kAges = kSame - 1;        // a first word: the age of each message follows, then the messages

void append(std::string& block, Word word) {
  char raw[sizeof word];
  std::memcpy(raw, &word, sizeof word);
  block.append(raw, sizeof word);
}

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

bool is_same(const RoundMessage& a, const RoundMessage& b) {
  return a.tag == b.tag && a.unread == 0 && b.unread == 0 && a.bytes.size() == b.bytes.size() &&
         (a.bytes.empty() || std::memcmp(a.bytes.data(), b.bytes.data(), a.bytes.size()) == 0);
}

[[noreturn]] void refuse() {
  throw Error(Errc::kProtocol, "what a host said in a round is malformed");
}

std::string_view take(std::string_view& bytes, std::size_t count) {
  if (bytes.size() < count) refuse();
  const std::string_view taken = bytes.substr(0, count);
  bytes.remove_prefix(count);
  return taken;
}

Word take_word(std::string_view& bytes) {
  Word word;
  std::memcpy(&word, take(bytes, sizeof word).data(), sizeof word);
  return word;
}

}  // namespace

LentBlock encode_block(const std::vector<RoundMessage>& messages, bool with_ages, std::string memory) {
  LentBlock lent{std::move(memory)};
  std::string& block = lent.text;
  block.clear();
  if (with_ages) {
    append(block, kAges);
    for (const RoundMessage& message : messages) append(block, message.age_us);
  }
  const RoundMessage* before = nullptr;
  for (const RoundMessage& message : messages) {
    if (before != nullptr && is_same(*before, message)) {
      append(block, kSame);
      continue;
    }
    append(block, static_cast<Word>(message.size()) | (message.unread == 0 ? 0 : kUnread));
    append(block, message.tag);
    if (message.unread != 0) {
      append(block, static_cast<Word>(message.bytes.size()));
      append(block, static_cast<Word>(message.unread));
    }
    if (&message == &messages.back() && is_lent(message)) {
      lent.data = text_of(message.bytes);
    } else {
      block.append(text_of(message.bytes)).append(text_of(message.rest));
    }
    before = &message;
  }
  return lent;
}

std::uint32_t age_us(std::int64_t then_ns, std::int64_t now_ns) {
  constexpr std::int64_t kMost = ~Word{0};
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>((now_ns - then_ns) / 1000, 0, kMost));
}

bool has_ages(std::string_view bytes) {
  return bytes.size() >= sizeof(Word) && take_word(bytes) == kAges;
}

void add_age(char* block, std::size_t count, std::uint32_t age_us) {
  if (!has_ages({block, sizeof(Word)})) return;
  for (std::size_t i = 1; i <= count; ++i) {
    Word age;
    std::memcpy(&age, block + i * sizeof age, sizeof age);
    age = age_us > ~Word{0} - age ? ~Word{0} : age + age_us;
    std::memcpy(block + i * sizeof age, &age, sizeof age);
  }
}

bool take_block(std::string_view& bytes, std::size_t count, std::size_t most_bytes,
                const std::function<void(std::size_t index, const RoundMessage& message)>& put) {
  const bool with_ages = has_ages(bytes);
  std::string_view ages;
  if (with_ages) {
    take_word(bytes);
    ages = take(bytes, count * sizeof(Word));
  }
  RoundMessage message;
  for (std::size_t i = 0; i < count; ++i) {
    if (with_ages) message.age_us = take_word(ages);
    const Word first = take_word(bytes);
    if (first != kSame) {
      const Word length = first & ~kUnread;
      if (length > most_bytes) refuse();
      message.tag = take_word(bytes);
      const Word begin = (first & kUnread) == 0 ? length : take_word(bytes);
      message.unread = (first & kUnread) == 0 ? 0 : take_word(bytes);
      if (begin > length || message.unread > length - begin) refuse();
      message.bytes = std::as_bytes(std::span(take(bytes, begin)));
      message.rest = std::as_bytes(std::span(take(bytes, length - begin - message.unread)));
    }
    put(i, message);
  }
  return with_ages;
}

}  // namespace runjob::runtime
