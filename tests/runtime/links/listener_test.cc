#include "runtime/links/listener.hpp"

#include "base/error.hpp"
#include "tests/catch.hpp"

using namespace runjob::runtime;
using runjob::Error;

TEST_CASE("each listener has a port and random bytes of its own", "[runtime][net]") {
  const Listener one = listen_for_members("127.0.0.1", 2), other = listen_for_members("127.0.0.1", 2);
  CHECK(one.address.address == "127.0.0.1");
  CHECK(one.address.port != 0);
  CHECK(one.address.port != other.address.port);
  CHECK(one.address.nonce != other.address.nonce);
}

TEST_CASE("an address that cannot be listened on is an error with it", "[runtime][net]") {
  CHECK_THROWS_WITH(listen_for_members("no-address", 2), ContainsSubstring("'no-address' is no numeric address"));
  CHECK_THROWS_WITH(listen_for_members("192.0.2.1", 2), ContainsSubstring("listening on 192.0.2.1"));
}
