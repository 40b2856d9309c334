#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

/// Parts of messages for people, and what of another program's text may reach a terminal. Text in UTF-8; other bytes
/// are taken one by one.
namespace runjob {

/// `text` without what a terminal obeys. It keeps lines, tabs, colours (CSI ... m), and titles and links that are
/// complete (OSC 0, 2 and 8). Everything else goes: other control characters of C0 and C1, DEL, and escape sequences
/// with their parameters, which move the cursor, write the clipboard or make the terminal answer, and the marks of
/// Unicode that change the direction of writing (U+202A to U+202E, U+2066 to U+2069), which can show a line in another
/// order than it is in.
/// Source  ECMA-48; xterm's control sequences for OSC; UAX #9.
std::string screen_text(std::string_view text);

/// The same for lines of a program's own, which keep the marks of direction: Arabic and Hebrew text uses them. A mark
/// that is in effect at the end of a line, or of `text`, is ended there, so that it changes nothing that follows.
std::string screen_lines(std::string_view text);

/// `text` with its control characters and marks of direction written as \n, \t, \xNN or \uNNNN, so that a message with
/// the user's bytes in it stays one line and cannot steer a terminal.
std::string one_line(std::string_view text);

/// "1 rank", "3 ranks". `noun`: in the singular, with a plural in -s.
std::string counted(std::int64_t count, std::string_view noun);

/// The first character of a text that is not empty.
struct FirstCharacter {
  std::size_t bytes;
  bool is_control;  ///< of C0, which has tab and line feed, or C1, or DEL
};
FirstCharacter first_character(std::string_view text);

/// How many bytes of `text` precede a character at its end of which the last bytes are missing.
std::size_t whole_characters(std::string_view text);

}  // namespace runjob
