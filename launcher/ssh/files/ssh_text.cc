#include "launcher/ssh/files/ssh_text.hpp"

namespace runjob {

std::string_view take_word(std::string_view& line) {
  constexpr std::string_view kBlanks = " \t\r\n\f";
  const std::size_t start = line.find_first_not_of(kBlanks);
  line.remove_prefix(start == std::string_view::npos ? line.size() : start);
  const std::string_view word = line.substr(0, line.find_first_of(kBlanks));
  line.remove_prefix(word.size());
  return word;
}

std::string lower_case(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return result;
}

bool matches_pattern(std::string_view name, std::string_view pattern) {
  std::size_t at = 0, in_pattern = 0;
  std::size_t star = std::string_view::npos, resume = 0;  // the last star, and where what it stands for ends
  while (at < name.size()) {
    if (in_pattern < pattern.size() && pattern[in_pattern] == '*') {
      star = in_pattern++;
      resume = at;
    } else if (in_pattern < pattern.size() && (pattern[in_pattern] == '?' || pattern[in_pattern] == name[at])) {
      ++in_pattern;
      ++at;
    } else if (star != std::string_view::npos) {
      in_pattern = star + 1;
      at = ++resume;
    } else {
      return false;
    }
  }
  while (in_pattern < pattern.size() && pattern[in_pattern] == '*') ++in_pattern;
  return in_pattern == pattern.size();
}

bool matches_patterns(std::string_view name, const std::vector<std::string_view>& patterns) {
  bool matched = false;
  for (std::string_view pattern : patterns) {
    const bool negated = !pattern.empty() && pattern.front() == '!';
    if (negated) pattern.remove_prefix(1);
    if (!matches_pattern(name, pattern)) continue;
    if (negated) return false;
    matched = true;
  }
  return matched;
}

}  // namespace runjob
