#pragma once

#include <string>
#include <string_view>
#include <vector>

/// The common parts of ssh's text files: words, the case of letters, patterns. Pure; safe on any bytes.
namespace runjob {

/// Takes the next word off the front of a line, and the blanks before it; "" at the end.
std::string_view take_word(std::string_view& line);

/// A to Z as a to z; other bytes as they are.
std::string lower_case(std::string_view text);

/// True if `name` matches `pattern`, in which '*' stands for any text and '?' for any one character (ssh_config(5),
/// PATTERNS). Time is bounded by the product of the lengths.
bool matches_pattern(std::string_view name, std::string_view pattern);

/// True if `name` matches one of `patterns` and none of those that begin with '!'.
bool matches_patterns(std::string_view name, const std::vector<std::string_view>& patterns);

}  // namespace runjob
