#include "hostfile/parse_hosts.hpp"

#include <string>

#include <fmt/format.h>

#include "base/error.hpp"
#include "tests/catch.hpp"

using namespace runjob;

namespace {

/// "me@a:4 p22 ikey g0,1; b:1": one line per list, so that tables read well.
std::string show(const std::vector<Host>& hosts) {
  std::string text;
  for (const Host& host : hosts) {
    text += text.empty() ? "" : "; ";
    if (!host.user.empty()) text += host.user + "@";
    text += fmt::format("{}:{}", host.name, host.slots);
    if (host.port) text += fmt::format(" p{}", *host.port);
    if (!host.identity.empty()) text += " i" + host.identity;
    if (host.gpus) text += fmt::format(" g{}", fmt::join(*host.gpus, ","));
  }
  return text;
}

}  // namespace

TEST_CASE("option -H takes every form of the grammar", "[unit]") {
  const std::vector<std::pair<std::string, std::string>> table = {
      {"localhost", "localhost:1"},
      {"localhost:4", "localhost:4"},
      {"a:2,b:3,c", "a:2; b:3; c:1"},
      {"a:2, b:3 ,c", "a:2; b:3; c:1"},
      {"me@a:2", "me@a:2"},
      {"s[1-2,7]:4", "s1:4; s2:4; s7:4"},
      {"n[08-10]", "n08:1; n09:1; n10:1"},
      {"r[1-2]n[1-2]:2", "r1n1:2; r1n2:2; r2n1:2; r2n2:2"},
      {"[fe80::1]:2,[::1]", "fe80::1:2; ::1:1"},
      {"a:1,b:1,a:1", "a:2; b:1"},
      {"s[1-3],s2:4", "s1:1; s2:5; s3:1"},
      {"a:1,me@a:1", "a:1; me@a:1"},
      {"10.0.0.1:2", "10.0.0.1:2"},
  };
  for (const auto& [text, hosts] : table) {
    INFO(text);
    CHECK(show(parse_host_list(text)) == hosts);
  }
}

TEST_CASE("a malformed -H names the column and what was expected", "[unit]") {
  const std::vector<std::pair<std::string, std::string>> table = {
      {"", "column 1: expected a host name, found the end"},
      {"a,", "column 3: expected a host name, found the end"},
      {"a,,b", "column 3: expected a host name, found ','"},
      {"a:", "column 3: expected a number of slots after ':', found the end"},
      {"a:1,bcd:x", "column 9: expected a number of slots after ':', found 'x'"},
      {"a:0", "column 3: expected a number of slots after ':' from 1 to 65536, found '0'"},
      {"a:-1", "column 3: expected a number of slots after ':', found '-'"},
      {"a:99999999999", "column 3: expected a number of slots after ':' from 1 to 65536, found '99999999999'"},
      {"a:4x", "column 4: expected ',' and another host, or the end of the list, found 'x'"},
      {"a b", "column 3: expected ',' and another host, or the end of the list, found 'b'"},
      {"a\n", "column 2: expected ',' and another host, or the end of the list, found '\\x0a'"},
      {"fe80::1:2", "column 1: expected an IPv6 address in brackets, as in [fe80::1]:2, found more than one ':'"},
      {"x,a:1:2", "column 3: expected an IPv6 address in brackets, as in [fe80::1]:2, found more than one ':'"},
      {"a:65536,a:1", "column 9: host a is named again and now has 65537 slots; at most 65536 are allowed"},
      {"a[1-60000],a[1-60000]", "column 12: expected at most 100000 hosts in the list, found a range with more"},
  };
  for (const auto& [text, message] : table) {
    INFO(text);
    CHECK_THROWS_WITH(parse_host_list(text), "-H: " + message);
  }
  CHECK_THROWS_WITH(parse_host_list("", "environment RUNJOB_HOSTS"),
                    "environment RUNJOB_HOSTS: column 1: expected a host name, found the end");
}

TEST_CASE("a hostfile takes every form of line", "[unit]") {
  const std::string text =
      "\xef\xbb\xbf# our machines\n"
      "localhost slots=4\r\n"
      "\r\n"
      "   \t\n"
      "node1:2   # short form\n"
      "me@node2\n"
      "s[1-2] slots = 2 port=2222 user=me identity=/k gpus=1,0\n"
      "[fe80::1] slots=3\n"
      "g gpus=0-2\n"
      "node1 slots=1 max_slots=8\n"
      "last";
  CHECK(show(parse_hostfile(text, "f")) ==
        "localhost:4; node1:3; me@node2:1; me@s1:2 p2222 i/k g1,0; me@s2:2 p2222 i/k g1,0; fe80::1:3; "
        "g:3 g0,1,2; last:1");
}

TEST_CASE("a malformed hostfile names the line, the column and what was expected", "[unit]") {
  const std::vector<std::pair<std::string, std::string>> table = {
      {"", "expected at least one host, found none"},
      {"# nothing\n\n", "expected at least one host, found none"},
      {"a\n\nb slots=x\n", "line 3, column 9: expected a number of slots, found 'x'"},
      {"a slots=4 slot=2",
       "line 1, column 11: expected slots, user, port, identity, gpus or max_slots, found "
       "'slot'; did you mean 'slots'?"},
      {"a:2 slots=2", "line 1, column 5: expected each option once, found 'slots' again"},
      {"me@a user=me", "line 1, column 6: expected each option once, found 'user' again"},
      {"a, b",
       "line 1, column 2: expected a space, then an option such as slots=4, or the end of the line, "
       "found ','"},
      {"a b", "line 1, column 4: expected '=' after 'b', found the end"},
      {"a gpus=0\n a slots=1",
       "line 2, column 2: host a is named twice, once with gpus= and once without; give both or neither"},
      {"fe80::1 slots=2",
       "line 1, column 1: expected an IPv6 address in brackets, as in [fe80::1]:2, found more than one ':'"},
      {"=4", "line 1, column 1: expected a host name, found '='"},
      {"a\rb",
       "line 1, column 2: expected a space, then an option such as slots=4, or the end of the line, "
       "found '\\x0d'"},
  };
  for (const auto& [text, message] : table) {
    INFO(text);
    CHECK_THROWS_WITH(parse_hostfile(text, "hosts.txt"), "hosts.txt: " + message);
  }
}
