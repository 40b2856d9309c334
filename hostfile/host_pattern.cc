#include "hostfile/host_pattern.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <charconv>
#include <cstdint>

#include <fmt/format.h>

namespace runjob {
namespace {

constexpr std::size_t kLongestName = 253;  // RFC 1035, section 2.3.4, in its textual form
constexpr std::size_t kMostDigits = 18;    // fits an int64 with room to spare

/// `low`-`high`, each number written with at least `width` digits.
struct Range {
  std::int64_t low = 0;
  std::int64_t high = 0;
  int width = 0;

  std::size_t count() const { return static_cast<std::size_t>(high - low) + 1; }
};

/// A name is a sequence of these: text, or the ranges of one bracket group.
struct Piece {
  std::string text;
  std::vector<Range> ranges;
};

bool is_alphanumeric(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool is_name_character(char c) {
  return is_alphanumeric(c) || c == '.' || c == '_' || c == '-';
}

std::int64_t take_range_number(TextCursor& cursor, std::size_t& digits) {
  const std::size_t start = cursor.position();
  const std::string_view text = cursor.take_while([](char c) { return c >= '0' && c <= '9'; });
  if (text.empty()) cursor.expected("a number in the range, such as [1-4,7]");
  if (text.size() > kMostDigits)
    cursor.fail_at(start, fmt::format("expected a number of at most {} digits", kMostDigits));
  digits = text.size();
  std::int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

Range take_range(TextCursor& cursor) {
  const std::size_t start = cursor.position();
  std::size_t low_digits = 0;
  std::size_t high_digits = 0;
  Range range;
  const bool padded = cursor.peek() == '0';
  range.low = range.high = take_range_number(cursor, low_digits);
  if (cursor.accept('-')) range.high = take_range_number(cursor, high_digits);
  if (range.high < range.low)
    cursor.fail_at(start, fmt::format("expected a range from low to high, found {}-{}", range.low, range.high));
  range.width = padded ? static_cast<int>(low_digits) : 0;
  return range;
}

std::vector<Range> take_ranges(TextCursor& cursor) {
  std::vector<Range> ranges;
  do {
    ranges.push_back(take_range(cursor));
  } while (cursor.accept(','));
  if (!cursor.accept(']')) cursor.expected("',' or ']' in the range");
  return ranges;
}

/// How many names `pieces` make, or more than `limit` as soon as it is more.
std::size_t count_names(const std::vector<Piece>& pieces, std::size_t limit) {
  std::size_t total = 1;
  for (const Piece& piece : pieces) {
    if (piece.ranges.empty()) continue;
    std::size_t count = 0;
    for (const Range& range : piece.ranges) {
      count += range.count();
      if (count > limit) return limit + 1;
    }
    total *= count;
    if (total > limit) return limit + 1;
  }
  return total;
}

/// The length of the longest name that `pieces` make.
std::size_t longest_name(const std::vector<Piece>& pieces) {
  std::size_t total = 0;
  for (const Piece& piece : pieces) {
    std::size_t longest = piece.text.size();
    for (const Range& range : piece.ranges)
      longest = std::max({longest, static_cast<std::size_t>(range.width), std::to_string(range.high).size()});
    total += longest;
  }
  return total;
}

std::vector<std::string> expand(const std::vector<Piece>& pieces) {
  std::vector<std::string> names{""};
  for (const Piece& piece : pieces) {
    if (piece.ranges.empty()) {
      for (std::string& name : names) name += piece.text;
      continue;
    }
    std::vector<std::string> longer;
    for (const std::string& name : names) {
      for (const Range& range : piece.ranges) {
        for (std::int64_t i = range.low; i <= range.high; ++i)
          longer.push_back(fmt::format("{}{:0{}}", name, i, range.width));
      }
    }
    names = std::move(longer);
  }
  return names;
}

/// True when the '[' at the cursor starts an IPv6 address and not a range: hexadecimal digits, then a ':'.
bool is_ipv6_next(const TextCursor& cursor) {
  if (cursor.peek() != '[') return false;
  const std::string_view inside = cursor.rest().substr(1);
  const std::size_t end = inside.find_first_not_of("0123456789abcdefABCDEF");
  return end != std::string_view::npos && inside[end] == ':';
}

std::string take_ipv6(TextCursor& cursor) {
  const std::size_t start = cursor.position();
  cursor.accept('[');
  const std::string inside(cursor.take_while([](char c) { return is_name_character(c) || c == ':' || c == '%'; }));
  if (!cursor.accept(']')) cursor.expected("']' after the IPv6 address");
  const std::size_t percent = inside.find('%');
  in6_addr ignored{};
  const bool zone_missing = percent != std::string::npos && percent + 1 == inside.size();
  if (zone_missing || ::inet_pton(AF_INET6, inside.substr(0, percent).c_str(), &ignored) != 1)
    cursor.fail_at(start, fmt::format("expected an IPv6 address in brackets, found {}", show_text(inside)));
  return inside;
}

std::vector<std::string> take_names(TextCursor& cursor, std::size_t max_names) {
  const std::size_t start = cursor.position();
  std::vector<Piece> pieces;
  while (!cursor.at_end()) {
    if (cursor.accept('[')) {
      pieces.push_back({"", take_ranges(cursor)});
      continue;
    }
    const std::string_view text = cursor.take_while(is_name_character);
    if (text.empty()) break;
    pieces.push_back({std::string(text), {}});
  }
  if (pieces.empty()) cursor.expected("a host name");
  const char first = pieces.front().text.empty() ? '0' : pieces.front().text.front();
  if (!is_alphanumeric(first))  // also keeps a name from being taken for an option of ssh
    cursor.fail_at(
        start, fmt::format("expected a letter or digit at the start of a host name, found {}", show_character(first)));
  if (count_names(pieces, max_names) > max_names)
    cursor.fail_at(start, fmt::format("expected at most {} hosts in the list, found a range with more", kMaxHosts));
  if (longest_name(pieces) > kLongestName)
    cursor.fail_at(start, fmt::format("expected a host name of at most {} characters", kLongestName));
  return expand(pieces);
}

/// Moves over `user@`, if that is what comes next.
std::string take_user(TextCursor& cursor) {
  const std::string_view rest = cursor.rest();
  const std::size_t end = rest.find_first_of("@,:[ \t=#");
  if (end == std::string_view::npos || rest[end] != '@') return "";
  const std::string_view user = rest.substr(0, end);
  if (user.empty()) cursor.expected("a user name before '@'");
  for (const char c : user) {
    if (!is_name_character(c) && c != '$' && c != '+') cursor.expected("a user name before '@'");
    cursor.advance(1);
  }
  if (user.front() == '-')
    cursor.fail_at(cursor.position() - user.size(), "expected a user name that does not start with '-'");
  cursor.accept('@');
  return std::string(user);
}

}  // namespace

HostPattern take_host_pattern(TextCursor& cursor, std::size_t max_names) {
  HostPattern pattern;
  pattern.user = take_user(cursor);
  if (is_ipv6_next(cursor)) {
    pattern.names = {take_ipv6(cursor)};
    if (max_names == 0) cursor.fail_at(0, fmt::format("expected at most {} hosts in the list", kMaxHosts));
  } else {
    pattern.names = take_names(cursor, max_names);
  }
  return pattern;
}

}  // namespace runjob
