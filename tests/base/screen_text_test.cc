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

TEST_CASE("a number and its noun agree", "[unit]") {
  CHECK(counted(0, "rank") == "0 ranks");
  CHECK(counted(1, "rank") == "1 rank");
  CHECK(counted(3, "other host") == "3 other hosts");
}
