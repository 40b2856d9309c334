#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace runjob {

/// Reads one line of a host list from left to right and keeps its position for messages.
/// Owner   the line and the source are lent by the caller and must outlive the cursor.
/// Errors  every failure is an Error(kHostfile): `SOURCE: line L, column C: expected WHAT, found 'c'`,
/// columns
///         in bytes from 1, the line left out when there is only one (`line_number` 0).
class TextCursor {
 public:
  TextCursor(std::string_view line, std::string_view source, int line_number)
      : line_(line), source_(source), line_number_(line_number) {}

  bool at_end() const { return position_ == line_.size(); }
  char peek() const { return at_end() ? '\0' : line_[position_]; }
  std::size_t position() const { return position_; }
  std::string_view rest() const { return line_.substr(position_); }
  void advance(std::size_t count) { position_ += count; }

  /// Moves over `c` when it is next.
  bool accept(char c);
  void skip_blanks();

  /// The longest run of characters that `wanted` takes, possibly empty.
  template <class Predicate>
  std::string_view take_while(Predicate wanted) {
    const std::size_t start = position_;
    while (!at_end() && wanted(line_[position_])) ++position_;
    return line_.substr(start, position_ - start);
  }

  /// A whole decimal number in [low, high]; `what` completes "expected ...": "a number of slots after ':'".
  int take_number(std::string_view what, int low, int high);

  /// Fails here: "expected `what`, found ...".
  [[noreturn]] void expected(std::string_view what) const;

  /// Fails at column `position` + 1 with a text of its own.
  [[noreturn]] void fail_at(std::size_t position, std::string_view message) const;

 private:
  std::string_view line_;
  std::string_view source_;
  int line_number_;
  std::size_t position_ = 0;
};

/// One byte as a message shows it: 'x', '\x07', a space by its name.
std::string show_character(char c);

/// A text of the user's as a message shows it: in quotes, control characters escaped, cut when long.
std::string show_text(std::string_view text);

}  // namespace runjob
