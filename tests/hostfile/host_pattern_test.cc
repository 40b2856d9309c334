#include "hostfile/host_pattern.hpp"

#include <string>
#include <vector>

#include "base/error.hpp"
#include "tests/catch.hpp"

using namespace runjob;

namespace {

HostPattern parse(std::string_view text, std::size_t max_names = kMaxHosts) {
  TextCursor cursor(text, "-H", 0);
  return take_host_pattern(cursor, max_names);
}

std::vector<std::string> names(std::string_view text) {
  return parse(text).names;
}

}  // namespace

TEST_CASE("a host pattern is a name, an address, or ranges", "[unit]") {
  using Names = std::vector<std::string>;
  CHECK(names("node-1.example_x.org") == Names{"node-1.example_x.org"});
  CHECK(names("10.0.0.1") == Names{"10.0.0.1"});
  CHECK(names("s[1-4]") == Names{"s1", "s2", "s3", "s4"});
  CHECK(names("s[1-2,7]") == Names{"s1", "s2", "s7"});
  CHECK(names("n[08-11]") == Names{"n08", "n09", "n10", "n11"});
  CHECK(names("n[0-1,00]") == Names{"n0", "n1", "n00"});
  CHECK(names("n[098-100]") == Names{"n098", "n099", "n100"});
  CHECK(names("r[1-2]n[1-2]x") == Names{"r1n1x", "r1n2x", "r2n1x", "r2n2x"});
  CHECK(names("[01-02]") == Names{"01", "02"});
  CHECK(names("[::1]") == Names{"::1"});
  CHECK(names("[fe80::1%eth0]") == Names{"fe80::1%eth0"});
}

TEST_CASE("a pattern ends where the text stops being a host", "[unit]") {
  TextCursor cursor("me@s[1-2]:4", "-H", 0);
  const HostPattern pattern = take_host_pattern(cursor);
  CHECK(pattern.user == "me");
  CHECK(pattern.names == std::vector<std::string>{"s1", "s2"});
  CHECK(cursor.rest() == ":4");
  CHECK(parse("a,b@c").user.empty());  // the '@' belongs to the next host
  CHECK(parse("me@[::1]").user == "me");
}

TEST_CASE("what is no host is an error at its column", "[unit]") {
  const std::vector<std::pair<std::string, std::string>> table = {
      {"", "column 1: expected a host name, found the end"},
      {":4", "column 1: expected a host name, found ':'"},
      {"@h", "column 1: expected a user name before '@', found '@'"},
      {"m/e@h", "column 2: expected a user name before '@', found '/'"},
      {"-oProxyCommand@h", "column 1: expected a user name that does not start with '-'"},
      {"-oProxyCommand", "column 1: expected a letter or digit at the start of a host name, found '-'"},
      {".a", "column 1: expected a letter or digit at the start of a host name, found '.'"},
      {"s[", "column 3: expected a number in the range, such as [1-4,7], found the end"},
      {"s[]", "column 3: expected a number in the range, such as [1-4,7], found ']'"},
      {"s[1-]", "column 5: expected a number in the range, such as [1-4,7], found ']'"},
      {"s[1,]", "column 5: expected a number in the range, such as [1-4,7], found ']'"},
      {"s[4-1]", "column 3: expected a range from low to high, found 4-1"},
      {"s[1-2", "column 6: expected ',' or ']' in the range, found the end"},
      {"[1-2:4", "column 5: expected ',' or ']' in the range, found ':'"},
      {"s[1234567890123456789]", "column 3: expected a number of at most 18 digits"},
      {"s[1-100001]", "column 1: expected at most 100000 hosts in the list, found a range with more"},
      {"s[1-1000][1-1000]", "column 1: expected at most 100000 hosts in the list, found a range with more"},
      {"s[0-999999999999999999]", "column 1: expected at most 100000 hosts in the list, found a range with more"},
      {"[::1", "column 5: expected ']' after the IPv6 address, found the end"},
      {"[::x]", "column 1: expected an IPv6 address in brackets, found '::x'"},
      {"[::1%]", "column 1: expected an IPv6 address in brackets, found '::1%'"},
      {std::string(254, 'a'), "column 1: expected a host name of at most 253 characters"},
  };
  for (const auto& [text, message] : table) {
    INFO(text);
    CHECK_THROWS_WITH(names(text), "-H: " + message);
  }
}

TEST_CASE("the bound on names holds exactly", "[unit]") {
  CHECK(parse("s[1-10]", 10).names.size() == 10);
  CHECK_THROWS_AS(parse("s[1-11]", 10), Error);
  CHECK_THROWS_AS(parse("s", 0), Error);
  CHECK_THROWS_AS(parse("[::1]", 0), Error);
}
