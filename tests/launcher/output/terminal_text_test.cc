#include "launcher/output/terminal_text.hpp"

#include <algorithm>

#include "tests/catch.hpp"

using namespace runjob;

namespace {

/// As much of a terminal as the text uses: lines, a cursor, and the four sequences; anything else fails the test.
class Screen {
 public:
  std::vector<std::string> lines = {""};

  void write(std::string_view text) {
    while (!text.empty()) text.remove_prefix(one(text));
  }

  /// What is on it, by line.
  std::string text() const {
    std::string result;
    for (const std::string& line : lines) result += line + "|";
    return result;
  }

 private:
  std::size_t one(std::string_view text) {
    const char c = text.front();
    if (c == '\n') {  // the terminal's driver returns the cursor, too
      column_ = 0;
      if (++row_ == lines.size()) lines.emplace_back();
    } else if (c == '\r') {
      column_ = 0;
    } else if (c == '\x1b') {
      return sequence(text);
    } else {
      std::string& line = lines[row_];
      line.resize(std::max(line.size(), column_ + 1), ' ');
      line[column_++] = c;
    }
    return 1;
  }

  std::size_t sequence(std::string_view text) {
    const std::size_t end = text.find_first_of("AJhlm");
    REQUIRE(end != std::string_view::npos);
    const std::string parameters(text.substr(2, end - 2));
    switch (text[end]) {
      case 'A':
        REQUIRE(std::stoul(parameters) <= row_);
        row_ -= std::stoul(parameters);
        break;
      case 'J':
        lines.resize(row_ + 1);
        lines[row_].resize(column_);
        break;
      case 'm':
        break;
      default:
        REQUIRE(parameters == "?7");
    }
    return end + 1;
  }

  std::size_t row_ = 0, column_ = 0;
};

struct Terminal {
  TerminalText text;
  Screen screen;
  OutputText::Source a{0, "a:", {}, false};
  OutputText::Source b{1, "b:", {}, false};
  OutputText::Source c{2, "c:", {}, false};

  std::string feed(OutputText::Source& source, std::string_view bytes) {
    text.feed(source, bytes, "");
    return draw();
  }
  std::string flush(OutputText::Source& source) {
    text.flush(source, "");
    return draw();
  }
  std::string draw() {
    std::string out;
    text.write_to(out);
    screen.write(out);
    return screen.text();
  }
};

}  // namespace

TEST_CASE("complete lines look as in a file", "[unit]") {
  Terminal terminal;
  terminal.text.feed(terminal.a, "one\r\ntwo\n", "T ");
  terminal.text.feed(terminal.b, "three\n", "");
  std::string out;
  terminal.text.write_to(out);
  CHECK(out == "T a:one\nT a:two\nb:three\n");
}

TEST_CASE("a line shown early and then cut has no more than one end on a terminal", "[unit]") {
  Terminal terminal;
  terminal.feed(terminal.a, "whole");
  CHECK(terminal.flush(terminal.a) == "a:whole|");
  CHECK(terminal.feed(terminal.b, "between\n") == "a:whole|b:between||");
  CHECK(terminal.feed(terminal.a, "\n") == "a:whole|b:between||");
  CHECK(terminal.feed(terminal.a, "\n") == "a:whole|b:between|a:||");
}

TEST_CASE("progress bars stay in place below the lines, one for each source", "[unit]") {
  Terminal terminal;
  CHECK(terminal.feed(terminal.b, " 1%\r") == "b: 1%|");
  CHECK(terminal.feed(terminal.a, " 10%\r") == "a: 10%|b: 1%|");
  CHECK(terminal.feed(terminal.c, "line\n") == "c:line|a: 10%|b: 1%|");
  CHECK(terminal.feed(terminal.b, " 2%\r") == "c:line|a: 10%|b: 2%|");
  CHECK(terminal.feed(terminal.a, "11%\r") == "c:line|a:11%|b: 2%|");
  CHECK(terminal.feed(terminal.a, "done\n") == "c:line|a:done|b: 2%|");
  CHECK(terminal.feed(terminal.b, "\n") == "c:line|a:done|b: 2%||");
}

TEST_CASE("a bar that begins its updates with a carriage return, and writes them in parts, is one as well", "[unit]") {
  Terminal terminal;
  terminal.feed(terminal.a, "\r 10");
  CHECK(terminal.flush(terminal.a) == "a: 10|");
  CHECK(terminal.feed(terminal.b, "line\n") == "b:line|a: 10|");
  CHECK(terminal.feed(terminal.a, "%\r 20%") == "b:line|a: 10%|");
  CHECK(terminal.flush(terminal.a) == "b:line|a: 20%|");
  CHECK(terminal.feed(terminal.a, "\r 30%\n") == "b:line|a: 30%||");
}

TEST_CASE("the last state of a bar stays as a line when its stream ends", "[unit]") {
  Terminal terminal;
  terminal.feed(terminal.a, "\r 99%\r");
  terminal.feed(terminal.b, "50%\r");
  terminal.text.end(terminal.a, "");
  CHECK(terminal.draw() == "a: 99%|b:50%|");
  terminal.text.close();
  CHECK(terminal.draw() == "a: 99%|b:50%||");
  CHECK(terminal.feed(terminal.c, "line\n") == "a: 99%|b:50%|c:line||");
}

TEST_CASE("a status is the last row and goes without a trace", "[unit]") {
  Terminal terminal;
  terminal.text.set_status("waiting");
  CHECK(terminal.draw() == "waiting|");
  CHECK(terminal.feed(terminal.a, "line\n") == "a:line|waiting|");
  CHECK(terminal.feed(terminal.b, "5%\r") == "a:line|b:5%|waiting|");
  terminal.text.add_line("runjob: said\n");
  CHECK(terminal.draw() == "a:line|runjob: said|b:5%|waiting|");
  terminal.text.set_status("");
  CHECK(terminal.draw() == "a:line|runjob: said|b:5%|");
  terminal.text.set_status("");
  std::string out;
  terminal.text.write_to(out);
  CHECK(out.empty());
}

TEST_CASE("a prompt has the cursor behind it, and no rows below", "[unit]") {
  Terminal terminal;
  terminal.text.set_status("waiting");
  terminal.feed(terminal.a, "name? ");
  CHECK(terminal.flush(terminal.a) == "a:name? |");
  CHECK(terminal.feed(terminal.a, "thanks\n") == "a:name? thanks|waiting|");
  terminal.feed(terminal.a, "again? ");
  terminal.flush(terminal.a);
  CHECK(terminal.feed(terminal.b, "line\n") == "a:name? thanks|a:again? |b:line|waiting|");
}

TEST_CASE("rows take at most half of the terminal, and none of one that is not ours", "[unit]") {
  Terminal terminal;
  terminal.text.set_height(4);
  terminal.feed(terminal.a, "1%\r");
  terminal.feed(terminal.b, "2%\r");
  CHECK(terminal.feed(terminal.c, "3%\r") == "a:1%|... 2 more progress bars|");
  terminal.text.set_height(0);
  CHECK(terminal.draw() == "|");
  CHECK(terminal.feed(terminal.a, "line\n") == "a:line||");
  terminal.text.set_height(40);
  CHECK(terminal.draw() == "a:line|b:2%|c:3%|");
}

TEST_CASE("colours stay, what moves the cursor does not", "[unit]") {
  TerminalText text;
  OutputText::Source source{0, "", {}, false};
  const auto shown = [&](std::string_view bytes) {
    std::string out;
    text.feed(source, bytes, "");
    text.write_to(out);
    return out;
  };
  CHECK(shown("\x1b[1;31mred\x1b[0m\n") == "\x1b[1;31mred\x1b[0m\n");
  CHECK(shown("\x1b[2A\x1b[Kup\x1b[?25l\x1b"
              "7\f\n") == "up\n");
  CHECK(shown("\x1b]0;title\atext\n") == "\x1b]0;title\atext\n");
  CHECK(shown("\x1b]8;;u\x1b\\link\n") == "\x1b]8;;u\x1b\\link\n");
  CHECK(shown("\x1b]52;c;YQ==\atext\n") == "text\n");
  CHECK(shown("cut \x1b[3\n") == "cut \n");
  CHECK(shown("\x1b\n") == "\n");
  CHECK(shown("\x1b[31m5%\r") == "\x1b[?7l\x1b[31m5%\x1b[0m\x1b[?7h");
}

TEST_CASE("a character that comes in two halves, with a pause between them, is one", "[unit]") {
  const auto [first, second, expected] =
      GENERATE(table<std::string, std::string, std::string>({{"gr\xc3", "\xbc\xc3\x9f\n", "gr\xc3\xbc\xc3\x9f\n"},
                                                             {"a\xc2",
                                                              "\x9b"
                                                              "2J\n",
                                                              "a2J\n"},
                                                             {"a\xc3", "", "a\xc3\n"}}));
  TerminalText text;
  OutputText::Source source{0, "", {}, false};
  std::string out;
  text.feed(source, first, "");
  text.flush(source, "");
  text.feed(source, second, "");
  text.end(source, "");
  text.feed(source, "\n", "");
  text.write_to(out);
  CHECK(out.substr(0, expected.size()) == expected);
}

TEST_CASE("the status row has no sequences either", "[unit]") {
  TerminalText text;
  text.set_status("waiting for s1: \x1b[2Jhello");
  std::string out;
  text.write_to(out);
  CHECK(out == "\x1b[?7lwaiting for s1: hello\x1b[?7h");
}
