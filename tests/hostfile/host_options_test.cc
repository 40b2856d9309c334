#include "hostfile/host_options.hpp"

#include <string>
#include <vector>

#include "base/error.hpp"
#include "tests/catch.hpp"

using namespace runjob;

namespace {

HostOptions parse(std::string_view text, HostOptions options = {}) {
  TextCursor cursor(text, "f", 1);
  take_host_options(cursor, options);
  return options;
}

}  // namespace

TEST_CASE("a host's options may stand in any order, with blanks around '='", "[unit]") {
  const HostOptions all = parse(" gpus=0,2-4\tslots = 4 port= 2222 user =me identity=~/.ssh/id  # note");
  CHECK(all.slots == 4);
  CHECK(all.port == 2222);
  CHECK(all.user == "me");
  CHECK(all.identity == "~/.ssh/id");
  CHECK(all.gpus == std::vector<int>{0, 2, 3, 4});
  CHECK(parse("").slots == std::nullopt);
  CHECK(parse("  # only a note").slots == std::nullopt);
  CHECK(parse(" slots=4#note").slots == 4);
  CHECK(parse(" identity=\"/a b/#id\"").identity == "/a b/#id");
}

TEST_CASE("Open MPI's max_slots is accepted when it makes sense", "[unit]") {
  CHECK(parse(" slots=4 max_slots=8").slots == 4);
  CHECK(parse(" max-slots=4 slots=4").slots == 4);
  CHECK_THROWS_WITH(parse(" slots=4 max_slots=2"),
                    "f: line 1, column 20: expected max_slots of at least 4, the host's slots, found 2");
}

TEST_CASE("what is no option is an error at its column", "[unit]") {
  const std::vector<std::pair<std::string, std::string>> table = {
      {"slots=4", "1: expected a space, then an option such as slots=4, or the end of the line, found 's'"},
      {" slots=4port=1", "9: expected a space, then an option such as slots=4, or the end of the line, found 'p'"},
      {" slots", "7: expected '=' after 'slots', found the end"},
      {" slots 4", "8: expected '=' after 'slots', found '4'"},
      {" slots=", "8: expected a number of slots, found the end"},
      {" slots=0", "8: expected a number of slots from 1 to 65536, found '0'"},
      {" slots=-1", "8: expected a number of slots, found '-'"},
      {" slots=65537", "8: expected a number of slots from 1 to 65536, found '65537'"},
      {" slots=1 slots=2", "10: expected each option once, found 'slots' again"},
      {" max_slots=4 max-slots=4", "14: expected each option once, found 'max_slots' again"},
      {" port=0", "7: expected a port from 1 to 65535, found '0'"},
      {" port=65536", "7: expected a port from 1 to 65535, found '65536'"},
      {" user=", "7: expected a user name after 'user=', found the end"},
      {" user=-l", "7: expected a user name that does not start with '-'"},
      {" identity=", "11: expected the path of an SSH identity file after 'identity=', found the end"},
      {" identity=\"a", "13: expected '\"' at the end of the path, found the end"},
      {" gpus=", "7: expected a GPU number, found the end"},
      {" gpus=0,", "9: expected a GPU number, found the end"},
      {" gpus=3-1", "7: expected a range from low to high, found 3-1"},
      {" gpus=0,0-1", "9: expected each GPU once, found 0 again"},
      {" gpus=1024", "7: expected a GPU number from 0 to 1023, found '1024'"},
      {" slot=4", "2: expected slots, user, port, identity, gpus or max_slots, found 'slot'; did you mean 'slots'?"},
      {" colour=4", "2: expected slots, user, port, identity, gpus or max_slots, found 'colour'"},
      {" 4", "2: expected an option such as slots=4, or the end of the line, found '4'"},
      {std::string(" \0", 2), "2: expected an option such as slots=4, or the end of the line, found '\\x00'"},
  };
  for (const auto& [text, message] : table) {
    INFO(text);
    CHECK_THROWS_WITH(parse(text), "f: line 1, column " + message);
  }
}

TEST_CASE("what stood before the options counts as given", "[unit]") {
  HostOptions before;
  before.slots = 4;
  before.user = "me";
  CHECK(parse(" port=22", before).slots == 4);
  CHECK_THROWS_WITH(parse(" slots=4", before), "f: line 1, column 2: expected each option once, found 'slots' again");
  CHECK_THROWS_WITH(parse(" user=me", before), "f: line 1, column 2: expected each option once, found 'user' again");
}
