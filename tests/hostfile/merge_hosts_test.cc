#include "hostfile/merge_hosts.hpp"

#include "tests/catch.hpp"

using namespace runjob;

namespace {

Host make(const char* name, int slots) {
  Host host;
  host.name = name;
  host.slots = slots;
  return host;
}

}  // namespace

TEST_CASE("a host named again adds its slots where it was first named", "[unit]") {
  HostMerger merger;
  CHECK(merger.add(make("a", 1)).empty());
  CHECK(merger.add(make("b", 2)).empty());
  CHECK(merger.add(make("A", 3)).empty());  // names have no case
  CHECK(merger.hosts() == std::vector<Host>{make("a", 4), make("b", 2)});
  CHECK(merger.mentions() == 3);
}

TEST_CASE("another user or port is another host", "[unit]") {
  HostMerger merger;
  Host me = make("a", 1);
  me.user = "me";
  Host port = make("a", 1);
  port.port = 2222;
  for (const Host& host : {make("a", 1), me, port, me}) CHECK(merger.add(host).empty());
  me.slots = 2;
  CHECK(merger.hosts() == std::vector<Host>{make("a", 1), me, port});
}

TEST_CASE("GPUs of a host named again are joined, each once", "[unit]") {
  HostMerger merger;
  Host first = make("a", 2);
  first.gpus = {2, 0};
  Host second = make("a", 2);
  second.gpus = {0, 1};
  CHECK(merger.add(first).empty());
  CHECK(merger.add(second).empty());
  CHECK(merger.hosts().front().gpus == std::vector<int>{2, 0, 1});
  CHECK(merger.hosts().front().slots == 4);
  CHECK(merger.add(make("a", 1)) == "host a is named twice, once with gpus= and once without; give both or neither");
}

TEST_CASE("an identity file may be given once or twice alike", "[unit]") {
  HostMerger merger;
  Host key = make("a", 1);
  key.identity = "k1";
  CHECK(merger.add(make("a", 1)).empty());
  CHECK(merger.add(key).empty());
  CHECK(merger.add(key).empty());
  CHECK(merger.hosts().front().identity == "k1");
  key.identity = "k2";
  CHECK(merger.add(key) == "host a is named twice with different identity files (k1 and k2); keep one");
}

TEST_CASE("merged slots stay in bounds", "[unit]") {
  HostMerger merger;
  CHECK(merger.add(make("a", kMaxSlots)).empty());
  CHECK(merger.add(make("a", 1)) == "host a is named again and now has 65537 slots; at most 65536 are allowed");
  CHECK(merger.hosts().front().slots == kMaxSlots);
}
