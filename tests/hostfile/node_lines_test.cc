#include "hostfile/node_lines.hpp"

#include "base/error.hpp"
#include "tests/catch.hpp"
#include "tests/hostfile/host_texts.hpp"

using namespace runjob;

namespace {

std::string name_in(std::string_view text) {
  TextCursor cursor(text, "f", 0);
  return take_node_name(cursor);
}

}  // namespace

TEST_CASE("a batch system names one host at a time", "[unit]") {
  CHECK(name_in("gpu-7.site.org rest") == "gpu-7.site.org");
  CHECK(name_in("[fe80::1]") == "fe80::1");
  CHECK_THROWS_WITH(name_in("me@s1"), "f: column 1: expected the name of one host, found 'me@s1'");
  CHECK_THROWS_WITH(name_in("s[1-2] 4"), "f: column 1: expected the name of one host, found 's[1-2]'");
}

TEST_CASE("slots of hosts that are named again are added, up to the most", "[unit]") {
  const auto take = [](TextCursor& cursor) {
    Host host;
    host.name = take_node_name(cursor);
    host.slots = kMaxSlots / 2;
    return host;
  };
  CHECK(text_of(parse_node_lines("a\nA\n", "f", take)) == "a:65536");
  CHECK_THROWS_WITH(parse_node_lines("a\na\n a\n", "f", take),
                    ContainsSubstring("f: line 3, column 2: host a is named again"));
}

TEST_CASE("a list has at most 100,000 hosts", "[unit]") {
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += "n" + std::to_string(i) + "\n";
  const auto take = [](TextCursor& cursor) {
    Host host;
    host.name = take_node_name(cursor);
    return host;
  };
  CHECK(parse_node_lines(text + "n7\n", "f", take).size() == 100'000);
  CHECK_THROWS_WITH(parse_node_lines(text + "more\n", "f", take),
                    "f: line 100001, column 1: expected at most 100000 hosts");
}
