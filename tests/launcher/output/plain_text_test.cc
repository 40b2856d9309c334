#include "launcher/output/plain_text.hpp"

#include "tests/catch.hpp"

using namespace runjob;

namespace {

struct Text {
  PlainText lines;
  OutputText::Source a{0, "[0]<stdout>:", {}, false};
  OutputText::Source b{23, "[11]<stderr>:", {}, false};
  std::string out;

  void feed(OutputText::Source& source, std::string_view bytes) {
    lines.feed(source, bytes, "");
    lines.write_to(out);
  }
  void flush(OutputText::Source& source) {
    lines.flush(source, "");
    lines.write_to(out);
  }
};

}  // namespace

TEST_CASE("every line gets its rank and stream, as horovodrun prints them", "[unit]") {
  Text text;
  text.feed(text.a, "one\ntwo\n\n");
  text.feed(text.b, "three\n");
  CHECK(text.out == "[0]<stdout>:one\n[0]<stdout>:two\n[0]<stdout>:\n[11]<stderr>:three\n");
}

TEST_CASE("on a terminal no sequence of a rank's reaches it, in a file each does", "[unit]") {
  OutputText::Source source{0, "", {}, false};
  const auto shown = [&](PlainText text) {
    std::string out;
    text.feed(source, "5%\r\x1b[2J\x1b]52;c;YQ==\a\x1b[31mred\n", "");
    text.write_to(out);
    return out;
  };
  CHECK(shown(PlainText(PlainText::Bytes::kForTerminal)) == "5%\r\x1b[31mred\n");
  CHECK(shown(PlainText()) == "5%\r\x1b[2J\x1b]52;c;YQ==\a\x1b[31mred\n");
}

TEST_CASE("a line waits for its end, so that two ranks' lines never mix", "[unit]") {
  Text text;
  text.feed(text.a, "be");
  text.feed(text.b, "other\n");
  text.feed(text.a, "gin");
  CHECK(text.out == "[11]<stderr>:other\n");
  text.feed(text.a, "ning\nrest");
  CHECK(text.out == "[11]<stderr>:other\n[0]<stdout>:beginning\n");
  text.flush(text.a);
  CHECK(text.out == "[11]<stderr>:other\n[0]<stdout>:beginning\n[0]<stdout>:rest");
}

TEST_CASE("a line shown early goes on where it stopped, or anew after another rank's", "[unit]") {
  Text text;
  text.feed(text.a, "name? ");
  text.flush(text.a);
  text.feed(text.a, "thanks\n");
  CHECK(text.out == "[0]<stdout>:name? thanks\n");
  text.out.clear();
  text.feed(text.a, "half");
  text.flush(text.a);
  text.feed(text.b, "between\n");
  text.feed(text.a, " done\n");
  CHECK(text.out == "[0]<stdout>:half\n[11]<stderr>:between\n[0]<stdout>: done\n");
}

TEST_CASE("a line shown early and then cut has no more than one end", "[unit]") {
  Text text;
  text.feed(text.a, "whole");
  text.flush(text.a);
  text.feed(text.b, "between\n");
  text.feed(text.a, "\n\nnext\n");
  CHECK(text.out == "[0]<stdout>:whole\n[11]<stderr>:between\n[0]<stdout>:\n[0]<stdout>:next\n");
}

TEST_CASE("a carriage return ends a piece, and its newline stays with it", "[unit]") {
  Text text;
  text.feed(text.a, " 10%\r 20%\r");
  CHECK(text.out == "[0]<stdout>: 10%\r[0]<stdout>: 20%\r");
  text.out.clear();
  text.feed(text.a, "dos\r\nnext\r");
  text.feed(text.a, "\nlast\n");
  CHECK(text.out == "[0]<stdout>:dos\r\n[0]<stdout>:next\r\n[0]<stdout>:last\n");
}

TEST_CASE("updates of a progress bar share a line until another rank writes", "[unit]") {
  Text text;
  text.feed(text.a, " 10%\r 20%\r");
  text.feed(text.b, "line\n");
  text.feed(text.a, " 30%\r");
  text.feed(text.b, " 9%\r");
  CHECK(text.out == "[0]<stdout>: 10%\r[0]<stdout>: 20%\r\n[11]<stderr>:line\n[0]<stdout>: 30%\r\n[11]<stderr>: 9%\r");
  text.out.clear();
  text.feed(text.b, "\n");
  CHECK(text.out == "\n");  // of the same bar
  text.out.clear();
  text.feed(text.a, "\n");
  CHECK(text.out.empty());  // it has its newline already
}

TEST_CASE("a time comes directly before the prefix", "[unit]") {
  Text text;
  text.lines.feed(text.a, "x\n", "Mon Jan 20 12:00:01 2020");
  text.lines.write_to(text.out);
  CHECK(text.out == "Mon Jan 20 12:00:01 2020[0]<stdout>:x\n");
}

TEST_CASE("a line without end comes out in parts and keeps every byte", "[unit]") {
  Text text;
  const std::string part(40'000, 'y');
  for (int i = 0; i < 5; ++i) text.feed(text.a, part);
  text.feed(text.a, "\n");
  CHECK(text.out == "[0]<stdout>:" + part + part + part + part + part + "\n");
}

TEST_CASE("bytes of any value pass unchanged, however they are cut", "[unit]") {
  std::string all;
  for (int i = 0; i < 256; ++i) {
    if (i != '\n' && i != '\r') all.push_back(static_cast<char>(i));
  }
  all += "\n";
  for (const std::size_t step : {1, 3, 255}) {
    Text text;
    for (std::size_t at = 0; at < all.size(); at += step) text.feed(text.a, std::string_view(all).substr(at, step));
    CHECK(text.out == "[0]<stdout>:" + all);
  }
}
