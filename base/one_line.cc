#include "base/one_line.hpp"

#include <fmt/format.h>

#include "base/screen_text.hpp"

namespace runjob {

std::string one_line(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const FirstCharacter character = first_character(text);
    if (text.front() == '\n') {
      result += "\\n";
    } else if (text.front() == '\t') {
      result += "\\t";
    } else if (character.is_control) {  // the last byte is also the number of the character in Unicode
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[character.bytes - 1]));
    } else {
      result += text.substr(0, character.bytes);
    }
    text.remove_prefix(character.bytes);
  }
  return result;
}

}  // namespace runjob
