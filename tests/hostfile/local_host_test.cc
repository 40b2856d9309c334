#include "hostfile/local_host.hpp"

#include "tests/catch.hpp"

using namespace runjob;

namespace {

bool is_local(const char* name, const char* own_name) {
  Host host;
  host.name = name;
  return is_this_host(host, own_name);
}

}  // namespace

TEST_CASE("this host has its own name and the loopback names", "[unit]") {
  for (const char* name :
       {"localhost", "LocalHost", "127.0.0.1", "127.3.2.1", "::1", "node1", "NODE1", "node1.example.org"}) {
    INFO(name);
    CHECK(is_local(name, "node1"));
  }
  CHECK(is_local("node1", "node1.example.org"));
  CHECK(is_local("node1.example.org", "Node1.Example.org"));
}

TEST_CASE("other hosts are other hosts", "[unit]") {
  for (const char* name :
       {"node2", "10.0.0.1", "128.0.0.1", "127", "127.0.0.1.nip.io", "fe80::1", "node", "node11", "localhost2"}) {
    INFO(name);
    CHECK_FALSE(is_local(name, "node1"));
  }
  CHECK_FALSE(is_local("node1.example.com", "node1.example.org"));
  CHECK_FALSE(is_local("node1", ""));
}

TEST_CASE("a user or a port asks for SSH, even to this host", "[unit]") {
  Host host;
  host.name = "localhost";
  CHECK(is_this_host(host, "node1"));
  host.user = "me";
  CHECK_FALSE(is_this_host(host, "node1"));
  host.user = "";
  host.port = 2222;
  CHECK_FALSE(is_this_host(host, "node1"));
}
