#include "launcher/output/output_text.hpp"

#include <vector>

#include "tests/catch.hpp"

using namespace runjob;

namespace {

/// Notes what it is given.
class Pieces : public OutputText {
 public:
  std::vector<std::string> all;

  void write_to(std::string&) override {}

 private:
  void put(Source&, std::string_view piece, std::string_view) override { all.emplace_back(piece); }
  void put_late_newline(Source&) override { all.emplace_back("late newline"); }
  void put_end(Source&) override { all.emplace_back("end"); }
};

}  // namespace

TEST_CASE("a stream is cut after each newline and carriage return", "[unit]") {
  Pieces pieces;
  OutputText::Source source;
  pieces.feed(source, "one\ntw", "");
  pieces.feed(source, "o\r\nbar\rbar\r", "");
  pieces.feed(source, "\nlast", "");
  pieces.end(source, "");
  CHECK(pieces.all == std::vector<std::string>{"one\n", "two\r\n", "bar\r", "bar\r", "late newline", "last", "end"});
}

TEST_CASE("the beginning of a line is held until it is let out", "[unit]") {
  Pieces pieces;
  OutputText::Source source;
  pieces.feed(source, "name? ", "");
  CHECK(pieces.all.empty());
  pieces.flush(source, "");
  pieces.flush(source, "");
  CHECK(pieces.all == std::vector<std::string>{"name? "});
  pieces.feed(source, std::string(OutputText::kMaxHeldBytes + 1, 'x'), "");
  CHECK(pieces.all.size() == 2);
}
