#include "base/screen_text.hpp"

#include "tests/catch.hpp"

using namespace runjob;

TEST_CASE("text, lines, tabs and colours stay", "[unit]") {
  for (const std::string text : {"", "a b\tc\nd", "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80", "latin \xe9\xfc.",
                                 "\x1b[1;31mred\x1b[m \x1b[38:5:9mx\x1b[0m"})
    CHECK(screen_text(text) == text);
}

TEST_CASE("titles and links stay, what writes the clipboard or asks the terminal does not", "[unit]") {
  for (const std::string text : {"\x1b]0;title\a", "\x1b]2;title\x1b\\", "\x1b]8;;http://u\x1b\\link\x1b]8;;\x1b\\"})
    CHECK(screen_text(text + "x") == text + "x");
  for (const std::string text : {"\x1b]52;c;YQ==\a", "\x1b]52;c;?\x1b\\", "\x1b]4;1;?\a", "\x1b]1337;File=:x\a",
                                 "\x1bP$q m\x1b\\", "\x1b_x\x1b\\", "\x1b^x\x1b\\", "\x1b]\a"})
    CHECK(screen_text("a" + text + "x") == "ax");
}

TEST_CASE("what moves the cursor, rings or changes the character set goes", "[unit]") {
  CHECK(screen_text("a\rb\bc\vd\fe\ag\x7fh") == "abcdegh");
  CHECK(screen_text("\x1b[2J\x1b[Hx\x1b[?1049h\x1b[6n\x1b[>4;2my") == "xy");
  CHECK(screen_text("\x1b(0x\x1b"
                    "7y\x1b c") == "xy");
  CHECK(screen_text("a\xc2\x9b"
                    "2Jb\xc2\x9d"
                    "52;c") == "a2Jb52;c");
  CHECK(screen_text("a\x9b"
                    "2J") == "a2J");
}

TEST_CASE("a sequence that never ends takes no line with it", "[unit]") {
  CHECK(screen_text("a\x1b]0;title\nthe error") == "a\nthe error");
  CHECK(screen_text("a\x1b[1\nthe error") == "a\nthe error");
  CHECK(screen_text("a\x1bP1\x1b[31mred") == "a\x1b[31mred");
  for (const char* text : {"\x1b", "\x1b[", "\x1b[1;", "\x1b]", "\x1b]0;x", "\x1b]0;x\x1b", "\x1b("})
    CHECK(screen_text(text).empty());
}

TEST_CASE("half of a character waits for the rest", "[unit]") {
  CHECK(whole_characters("") == 0);
  CHECK(whole_characters("ab") == 2);
  CHECK(whole_characters("a\xc3\xbc") == 3);
  for (const char* half : {"a\xc2", "a\xe2\x82", "a\xf0\x9f\x98"}) CHECK(whole_characters(half) == 1);
  for (const char* other : {"\x9b", "\x80\x80\x80\x80", "\xe9.", "\xff"})
    CHECK(whole_characters(other) == std::string_view(other).size());
}

TEST_CASE("one_line keeps text and escapes what would move a terminal", "[unit]") {
  CHECK(one_line("a b \xc3\xa4") == "a b \xc3\xa4");
  CHECK(one_line("a\nb\tc\x1b[31m\x7f") == "a\\nb\\tc\\x1b[31m\\x7f");
  CHECK(one_line("a\xc2\x9b"
                 "2J\x9b"
                 "\xe9") == "a\\x9b2J\\x9b\xe9");
  CHECK(one_line("").empty());
}

TEST_CASE("marks that turn the direction of writing go from messages", "[unit]") {
  for (const char* mark : {"\u202a", "\u202b", "\u202c", "\u202d", "\u202e", "\u2066", "\u2067", "\u2068", "\u2069"}) {
    CHECK(screen_text(std::string("a") + mark + "b\n") == "ab\n");
    CHECK(one_line(mark).starts_with("\\u20"));
  }
  CHECK(one_line("a\u202eb\u2069") == "a\\u202eb\\u2069");
  for (const char* other : {"\u2029", "\u202f", "\u2065", "\u206a", "\u200f", "\u05d0"})
    CHECK(screen_text(other) == other);
}

TEST_CASE("in a line of a program's own they stay, and are ended with it", "[unit]") {
  CHECK(screen_lines("a\u202eb") == "a\u202eb\u202c");
  CHECK(screen_lines("a\u2067b\n") == "a\u2067b\u2069\n");
  CHECK(screen_lines("\u202ba\u202c\u2066b\u2069\n") == "\u202ba\u202c\u2066b\u2069\n");
  CHECK(screen_lines("\u202e\u2066\u202d\na\n") == "\u202e\u2066\u202d\u202c\u2069\u202c\na\n");
  CHECK(screen_lines("\u2066\u202e\u2069a") == "\u2066\u202e\u2069a");  // the end of an isolate ends what is open in it
  CHECK(screen_lines("\u202e\u2069\u2066\u202c") == "\u202e\u2069\u2066\u202c\u2069\u202c");  // ends that end nothing
  std::string many, ends;
  for (int i = 0; i < 1000; ++i) many += "\u202e";
  for (int i = 0; i < 125; ++i) ends += "\u202c";
  CHECK(screen_lines(many + "a") == many.substr(0, ends.size()) + "a" + ends);
}

TEST_CASE("a number and its noun agree", "[unit]") {
  CHECK(counted(0, "rank") == "0 ranks");
  CHECK(counted(1, "rank") == "1 rank");
  CHECK(counted(3, "other host") == "3 other hosts");
}
