/// Feeds any bytes to what comes before a terminal: screen_text(), whose result must not change when it passes again,
/// and one_line(), which must leave no control character.
#include <cstddef>
#include <string>
#include <string_view>

#include "base/screen_text.hpp"
#include "tests/fuzz.hpp"

using namespace runjob;

void fuzz(std::string_view text) {
  const std::string shown = screen_text(text);
  require(shown.size() <= text.size());
  require(screen_text(shown) == shown);
  require(shown.find_first_of("\r\b\v\f\x7f") == std::string::npos);

  const std::string lines = screen_lines(text);
  require(screen_lines(lines) == lines && screen_text(lines) == shown);

  const std::string line = one_line(text);
  require(one_line(line) == line);
  std::string_view rest = line;
  while (!rest.empty()) {
    const FirstCharacter character = first_character(rest);
    require(!character.is_control && character.bytes >= 1 && character.bytes <= rest.size());
    rest.remove_prefix(character.bytes);
  }

  const std::size_t whole = whole_characters(text);
  require(whole <= text.size() && text.size() - whole <= 3);
}
