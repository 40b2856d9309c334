#include "hostfile/text_cursor.hpp"

#include "base/error.hpp"
#include "tests/catch.hpp"

using namespace runjob;

TEST_CASE("a cursor reads a line from left to right", "[unit]") {
  TextCursor cursor("ab \t12,", "-H", 0);
  CHECK(cursor.take_while([](char c) { return c >= 'a'; }) == "ab");
  CHECK(cursor.position() == 2);
  cursor.skip_blanks();
  CHECK(cursor.take_number("a number", 0, 99) == 12);
  CHECK_FALSE(cursor.accept(';'));
  CHECK(cursor.rest() == ",");
  CHECK(cursor.accept(','));
  CHECK(cursor.at_end());
  CHECK(cursor.peek() == '\0');
  CHECK_FALSE(cursor.accept('\0'));
}

TEST_CASE("a cursor's errors name source, line and column", "[unit]") {
  TextCursor list("a:x", "-H", 0);
  list.advance(2);
  CHECK_THROWS_WITH(list.take_number("slots", 1, 8), "-H: column 3: expected slots, found 'x'");
  TextCursor file("a 9", "hosts.txt", 7);
  file.advance(2);
  CHECK_THROWS_WITH(file.take_number("slots", 1, 8),
                    "hosts.txt: line 7, column 3: expected slots from 1 to 8, found '9'");
  CHECK_THROWS_WITH(file.expected("more"), "hosts.txt: line 7, column 4: expected more, found the end");
  CHECK_THROWS_WITH(file.fail_at(0, "text"), "hosts.txt: line 7, column 1: text");
}

TEST_CASE("a number that no integer holds is out of range, not wrapped", "[unit]") {
  TextCursor cursor("99999999999999999999", "-H", 0);
  CHECK_THROWS_WITH(cursor.take_number("slots", 1, 8),
                    "-H: column 1: expected slots from 1 to 8, found '99999999999999999999'");
}

TEST_CASE("messages show any byte on one line", "[unit]") {
  CHECK(show_character('x') == "'x'");
  CHECK(show_character(' ') == "a space");
  CHECK(show_character('\t') == "a tab");
  CHECK(show_character('\0') == "'\\x00'");
  CHECK(show_text("a\nb") == "'a\\x0ab'");
  CHECK(show_text(std::string(61, 'a')) == "'" + std::string(60, 'a') + "...'");
}
