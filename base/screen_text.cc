#include "base/screen_text.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

namespace runjob {
namespace {

constexpr char kEscape = '\x1b';

bool in_range(char c, int low, int high) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= low && byte <= high;
}

bool is_c0(char c) {
  return in_range(c, 0, 0x1f) || c == '\x7f';
}

/// How many bytes a character of UTF-8 has that begins with `c`; 0 if none does.
std::size_t bytes_after_lead(char c) {
  if (in_range(c, 0xc2, 0xdf)) return 2;
  if (in_range(c, 0xe0, 0xef)) return 3;
  return in_range(c, 0xf0, 0xf4) ? 4 : 0;
}

/// The bytes of `text` from its second one on that continue a character, at most `most`.
std::size_t continuations(std::string_view text, std::size_t most) {
  std::size_t count = 0;
  while (count < most && count + 1 < text.size() && in_range(text[count + 1], 0x80, 0xbf)) ++count;
  return count;
}

/// An escape sequence at the beginning of a text, and whether it may stay.
struct Sequence {
  std::size_t length;
  bool harmless;
};

/// A string that ESC and one of ] P X ^ _ begins. Without its terminator it ends where a control character does not
/// belong.
Sequence control_string(std::string_view text) {
  const auto last = std::find_if(text.begin() + 2, text.end(), [](char c) { return is_c0(c) && c != '\t'; });
  const auto end = static_cast<std::size_t>(last - text.begin());
  const bool by_bell = end < text.size() && text[end] == '\a';
  const bool by_terminator = text.substr(end).starts_with("\x1b\\");
  if (!by_bell && !by_terminator) return {end, false};
  const std::string_view number = text.substr(2, std::min(text.find(';'), end) - 2);
  return {end + (by_bell ? 1 : 2), text[1] == ']' && (number == "0" || number == "2" || number == "8")};
}

Sequence escape_sequence(std::string_view text) {
  if (text.size() < 2) return {text.size(), false};
  if (std::string_view("]PX^_").find(text[1]) != std::string_view::npos) return control_string(text);
  const bool is_csi = text[1] == '[';
  std::size_t end = is_csi ? 2 : 1;
  while (end < text.size() && in_range(text[end], 0x20, is_csi ? 0x3f : 0x2f)) ++end;
  if (end == text.size() || is_c0(text[end])) return {end, false};
  const bool plain = std::all_of(text.begin() + 2, text.begin() + static_cast<std::ptrdiff_t>(end),
                                 [](char c) { return in_range(c, '0', ';'); });
  return {end + 1, is_csi && text[end] == 'm' && plain};
}

/// The number in Unicode of a mark of direction that `text` begins with; 0 for anything else.
unsigned direction_mark(std::string_view text) {
  if (text.size() < 3 || text[0] != '\xe2') return 0;
  if (text[1] == '\x80' && in_range(text[2], 0xaa, 0xae))
    return 0x2000u + (static_cast<unsigned char>(text[2]) & 0x3fu);
  if (text[1] == '\x81' && in_range(text[2], 0xa6, 0xa9))
    return 0x2040u + (static_cast<unsigned char>(text[2]) & 0x3fu);
  return 0;
}

/// The marks of direction that are in effect in a line.
class Directions {
 public:
  /// False for a mark that has no effect, because too many are in effect already.
  bool follow(unsigned mark) {
    if (mark == kEndOfIsolate) {
      const auto isolate = std::find(open_.rbegin(), open_.rend(), kEndOfIsolate);
      if (isolate != open_.rend()) open_.erase(isolate.base() - 1, open_.end());  // and what is open within it
    } else if (mark != kEndOfEmbedding) {
      if (open_.size() == kMostOpen) return false;
      open_.push_back(mark >= kFirstIsolate ? kEndOfIsolate : kEndOfEmbedding);
    } else if (!open_.empty() && open_.back() == kEndOfEmbedding) {
      open_.pop_back();
    }
    return true;
  }
  /// Appends the marks that end those in effect.
  void end(std::string& text) {
    for (; !open_.empty(); open_.pop_back()) text += open_.back() == kEndOfIsolate ? "\u2069" : "\u202c";
  }

 private:
  static constexpr std::size_t kMostOpen = 125;  // UAX #9: max_depth
  static constexpr unsigned kEndOfEmbedding = 0x202c, kFirstIsolate = 0x2066, kEndOfIsolate = 0x2069;
  std::vector<unsigned> open_;  // the mark that ends each, from the outermost on
};

/// `directions`: null when their marks go.
std::string shown(std::string_view text, Directions* directions) {
  std::string result;
  while (!text.empty()) {
    const auto special =
        std::find_if(text.begin(), text.end(), [](char c) { return is_c0(c) || in_range(c, 0x80, 0xff); });
    const auto plain = static_cast<std::size_t>(special - text.begin());
    result += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) break;
    const FirstCharacter character = first_character(text);
    Sequence sequence{character.bytes, !character.is_control || text.front() == '\n' || text.front() == '\t'};
    if (text.front() == kEscape) sequence = escape_sequence(text);
    if (const unsigned mark = direction_mark(text); mark != 0) {
      sequence.harmless = directions != nullptr && directions->follow(mark);
    }
    if (text.front() == '\n' && directions != nullptr) directions->end(result);
    if (sequence.harmless) result += text.substr(0, sequence.length);
    text.remove_prefix(sequence.length);
  }
  if (directions != nullptr) directions->end(result);
  return result;
}

}  // namespace

FirstCharacter first_character(std::string_view text) {
  const char first = text.front();
  const std::size_t bytes = bytes_after_lead(first);
  if (bytes == 0 || continuations(text, bytes - 1) != bytes - 1)
    return {1, is_c0(first) || in_range(first, 0x80, 0x9f)};
  return {bytes, first == '\xc2' && in_range(text[1], 0x80, 0x9f)};
}

std::size_t whole_characters(std::string_view text) {
  for (std::size_t back = 1; back <= std::min<std::size_t>(text.size(), 3); ++back) {
    const std::size_t begin = text.size() - back;
    if (in_range(text[begin], 0x80, 0xbf)) continue;
    return bytes_after_lead(text[begin]) > back ? begin : text.size();
  }
  return text.size();
}

std::string screen_text(std::string_view text) {
  return shown(text, nullptr);
}

std::string screen_lines(std::string_view text) {
  Directions directions;
  return shown(text, &directions);
}

std::string one_line(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const FirstCharacter character = first_character(text);
    if (text.front() == '\n') {
      result += "\\n";
    } else if (text.front() == '\t') {
      result += "\\t";
    } else if (const unsigned mark = direction_mark(text); mark != 0) {
      result += fmt::format("\\u{:04x}", mark);
    } else if (character.is_control) {  // the last byte is also the number of the character in Unicode
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[character.bytes - 1]));
    } else {
      result += text.substr(0, character.bytes);
    }
    text.remove_prefix(character.bytes);
  }
  return result;
}

std::string counted(std::int64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

}  // namespace runjob
