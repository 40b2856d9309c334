#include "base/json_text.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include <nlohmann/json.hpp>

namespace runjob {
namespace {

constexpr std::size_t kMostLevels = 32;  // the deepest document of ours has five

enum CborType : unsigned { kBytes = 2, kText = 3, kArray = 4, kMap = 5 };

struct CborHead {
  unsigned type = 0;
  bool is_open = false;  ///< the item has no length: it goes on up to a mark
  std::uint64_t argument = 0;
};

/// Takes the head of an item off `bytes`. nullopt for what no reader takes for one.
std::optional<CborHead> take_head(std::string_view& bytes) {
  constexpr unsigned kFirstLong = 24, kLastLong = 27, kOpen = 31;  // from 24 on the argument has 1, 2, 4 or 8 bytes
  if (bytes.empty()) return std::nullopt;
  const unsigned first = static_cast<unsigned char>(bytes.front());
  bytes.remove_prefix(1);
  CborHead head{first >> 5, (first & 31) == kOpen, first & 31};
  if (head.argument < kFirstLong || head.is_open) return head;
  const std::size_t size = std::size_t{1} << (head.argument - kFirstLong);
  if (head.argument > kLastLong || size > bytes.size()) return std::nullopt;
  head.argument = 0;
  for (const char byte : bytes.substr(0, size)) head.argument = head.argument << 8 | static_cast<unsigned char>(byte);
  bytes.remove_prefix(size);
  return head;
}

[[noreturn]] void refuse(std::size_t at, const std::string& why) {
  constexpr int kWrongByte = 113;  // nlohmann's number for a byte that is not allowed in its place
  throw nlohmann::json::parse_error::create(kWrongByte, at, why, nullptr);
}

}  // namespace

nlohmann::json parse_json(std::string_view text) {
  return nlohmann::json::parse(text);
}

nlohmann::json try_parse_json(std::string_view text) {
  return nlohmann::json::parse(text, nullptr, false);
}

void check_cbor_levels(std::string_view bytes) {
  const std::size_t size = bytes.size();
  std::array<std::uint64_t, kMostLevels + 1> left{1};  // by level: the items that are still to come
  for (std::size_t level = 0;;) {
    while (left[level] == 0) {
      if (level == 0) return;
      --level;
    }
    --left[level];
    const std::size_t at = size - bytes.size() + 1;  // nlohmann counts bytes from 1
    const std::optional<CborHead> head = take_head(bytes);
    if (!head) return;  // nlohmann stops here as well, with the better error
    const bool is_string = head->type == kBytes || head->type == kText,
               is_list = head->type == kArray || head->type == kMap;
    if (head->is_open && (is_string || is_list)) refuse(at, "an item has no length");
    if (is_string) {
      if (head->argument > bytes.size()) return;
      bytes.remove_prefix(head->argument);
    } else if (is_list) {
      if (level == kMostLevels)
        refuse(at, "the document is nested more than " + std::to_string(kMostLevels) + " levels deep");
      const std::uint64_t items = std::min<std::uint64_t>(head->argument, size);  // each has a byte at least
      left[++level] = head->type == kMap ? 2 * items : items;
    }
  }
}

nlohmann::json parse_cbor(std::string_view bytes) {
  check_cbor_levels(bytes);
  return nlohmann::json::from_cbor(bytes);
}

std::string json_text(const nlohmann::json& document, int indent) {
  return document.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string ordered_json_text(const nlohmann::ordered_json& document, int indent) {
  return document.dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string cbor_bytes(const nlohmann::json& document) {
  std::string bytes;
  nlohmann::json::to_cbor(document, bytes);
  return bytes;
}

}  // namespace runjob
