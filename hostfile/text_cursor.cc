#include "hostfile/text_cursor.hpp"

#include <charconv>

#include <fmt/format.h>

#include "base/error.hpp"

namespace runjob {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

std::string escaped(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x20 || byte == 0x7f ? fmt::format("\\x{:02x}", byte) : std::string(1, c);
}

}  // namespace

bool TextCursor::accept(char c) {
  if (at_end() || line_[position_] != c) return false;
  ++position_;
  return true;
}

void TextCursor::skip_blanks() {
  take_while([](char c) { return c == ' ' || c == '\t'; });
}

int TextCursor::take_number(std::string_view what, int low, int high) {
  const std::size_t start = position_;
  const std::string_view digits = take_while(is_digit);
  if (digits.empty()) expected(what);
  int value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || value < low || value > high) {
    fail_at(start, fmt::format("expected {} from {} to {}, found {}", what, low, high, show_text(digits)));
  }
  return value;
}

void TextCursor::expected(std::string_view what) const {
  const std::string found = at_end() ? "the end" : show_character(line_[position_]);
  fail_at(position_, fmt::format("expected {}, found {}", what, found));
}

void TextCursor::fail_at(std::size_t position, std::string_view message) const {
  const std::string line = line_number_ > 0 ? fmt::format("line {}, ", line_number_) : "";
  throw Error(Errc::kHostfile, fmt::format("{}: {}column {}: {}", source_, line, position + 1, message));
}

std::string show_character(char c) {
  if (c == ' ') return "a space";
  if (c == '\t') return "a tab";
  return fmt::format("'{}'", escaped(c));
}

std::string show_text(std::string_view text) {
  constexpr std::size_t kLongest = 60;
  std::string shown = "'";
  for (const char c : text.substr(0, kLongest)) shown += escaped(c);
  return shown + (text.size() > kLongest ? "...'" : "'");
}

}  // namespace runjob
