#include "runtime/links/numeric_address.hpp"

#include <netinet/in.h>

#include "base/error.hpp"
#include "tests/catch.hpp"

using namespace runjob::runtime;

TEST_CASE("numeric addresses of both families, and nothing that would need a name server", "[runtime]") {
  const AddressList v4 = parse_address("127.0.0.1", 80), v6 = parse_address("::1", 80);
  CHECK(v4->ai_family == AF_INET);
  CHECK(v6->ai_family == AF_INET6);
  CHECK(reinterpret_cast<const sockaddr_in*>(v4->ai_addr)->sin_port == htons(80));
  CHECK_THROWS_WITH(parse_address("localhost", 80), ContainsSubstring("'localhost' is no numeric address"));
}
