#include "launcher/ssh/files/ssh_data.hpp"

#include "tests/catch.hpp"

using namespace runjob;

TEST_CASE("what is appended is read back", "[unit]") {
  std::string bytes = "\x07";
  append_number(bytes, 0x80ffff01u);
  append_string(bytes, std::string_view("a\0b", 3));
  append_string(bytes, "");
  SshDataReader reader(bytes);
  CHECK(reader.byte() == 7);
  CHECK(reader.number() == 0x80ffff01u);
  CHECK(reader.string() == std::string_view("a\0b", 3));
  CHECK(reader.string().empty());
  CHECK(reader.rest().empty());
  CHECK_FALSE(reader.failed());
  CHECK(reader.byte() == 0);
  CHECK(reader.failed());
}

TEST_CASE("a length beyond the end makes the reader fail for good", "[unit]") {
  std::string bytes;
  append_number(bytes, 0xffffffffu);
  bytes += "abc";
  SshDataReader reader(bytes);
  CHECK(reader.string().empty());
  CHECK(reader.failed());
  CHECK(reader.number() == 0);
  CHECK(reader.rest().empty());
}

TEST_CASE("base64 goes both ways", "[unit]") {
  for (const std::string& bytes :
       {std::string("f"), std::string("fo"), std::string("foo"), std::string("foob"), std::string("\0\xff\x10", 3)}) {
    CHECK(base64_decode(base64_encode(bytes)) == bytes);
  }
  CHECK(base64_encode("fooba") == "Zm9vYmE=");
  CHECK(base64_encode("").empty());
}

TEST_CASE("what is not base64 gives nothing", "[unit]") {
  for (const char* text : {"", "Zg", "Zg=", "Zg==\n", " Zg==", "Z===", "====", "Zm9v!mFy", "Zg==Zg=="}) {
    INFO(text);
    CHECK(base64_decode(text).empty());
  }
}
