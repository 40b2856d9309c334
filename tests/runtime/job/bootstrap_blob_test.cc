#include "runtime/job/bootstrap_blob.hpp"

#include "base/error.hpp"
#include "tests/catch.hpp"

using namespace runjob::runtime;

TEST_CASE("what a rank tells the others comes back as it was", "[runtime][unit]") {
  BootstrapBlob blob;
  blob.mesh = std::string("\0\xff raw", 6);
  blob.control = std::string("\0\x80 127.0.0.1", 12);
  blob.process_sets = "[0, 1]";
  blob.fusion_threshold = 1ull << 40;
  blob.mixes_groups = false;
  CHECK(decode_bootstrap_blob(encode(blob), "rank 1") == blob);
  blob = {};
  blob.error = "no backend: \xc3\xa9 and \xff";
  CHECK(decode_bootstrap_blob(encode(blob), "rank 1") == blob);
}

TEST_CASE("malformed bytes from another rank are an error", "[runtime][unit]") {
  for (const std::string& bytes : {std::string(), std::string("x"), std::string("\xa0"), encode(BootstrapBlob{}) + "y",
                                   std::string(200'000, '\x81')}) {
    CHECK_THROWS_WITH(decode_bootstrap_blob(bytes, "rank 1 on b"),
                      ContainsSubstring("rank 1 on b has sent malformed addresses: "));
  }
}
