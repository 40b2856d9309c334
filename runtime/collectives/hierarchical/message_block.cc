#include "runtime/collectives/hierarchical/message_block.hpp"

#include <cstring>

#include "base/error.hpp"

namespace runjob::runtime {
namespace {

using Word = std::uint32_t;
constexpr Word kSame = ~Word{0};

void append(std::string& block, Word word) {
  char raw[sizeof word];
  std::memcpy(raw, &word, sizeof word);
  block.append(raw, sizeof word);
}

bool is_same(const RoundMessage& a, const RoundMessage& b) {
  return a.tag == b.tag && a.bytes.size() == b.bytes.size() &&
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

std::string encode_block(const std::vector<RoundMessage>& messages) {
  std::string block;
  const RoundMessage* before = nullptr;
  for (const RoundMessage& message : messages) {
    if (before != nullptr && is_same(*before, message)) {
      append(block, kSame);
      continue;
    }
    append(block, static_cast<Word>(message.bytes.size()));
    append(block, message.tag);
    block.append(reinterpret_cast<const char*>(message.bytes.data()), message.bytes.size());
    before = &message;
  }
  return block;
}

void take_block(std::string_view& bytes, std::size_t count, std::size_t most_bytes,
                const std::function<void(std::size_t index, const RoundMessage& message)>& put) {
  RoundMessage message;
  for (std::size_t i = 0; i < count; ++i) {
    const Word length = take_word(bytes);
    if (length != kSame) {
      if (length > most_bytes) refuse();
      message.tag = take_word(bytes);
      message.bytes = std::as_bytes(std::span(take(bytes, length)));
    }
    put(i, message);
  }
}

}  // namespace runjob::runtime
