#include "runtime/collectives/gloo/gloo_context.hpp"

#include <thread>

#include <gloo/transport/tcp/device.h>

#include "tests/catch.hpp"

using namespace runjob::runtime;

namespace {

std::shared_ptr<GlooContext> make(int rank, int size, std::chrono::milliseconds timeout = std::chrono::seconds(30)) {
  gloo::transport::tcp::attr attributes;
  attributes.hostname = "127.0.0.1";
  return std::make_shared<GlooContext>(rank, size, gloo::transport::tcp::CreateDevice(attributes), timeout);
}

}  // namespace

TEST_CASE("each rank's addresses hold one for every other rank", "[runtime][net]") {
  const auto one = make(1, 3);
  CHECK(one->own_endpoints().size() == 2);
  CHECK(one->addresses().size() == make(0, 2)->addresses().size() * 2);
  CHECK(make(0, 1)->addresses().empty());
}

TEST_CASE("three ranks connect after one exchange of addresses", "[runtime][net]") {
  const std::shared_ptr<GlooContext> ranks[] = {make(0, 3), make(1, 3), make(2, 3)};
  const std::vector<std::string> addresses = {ranks[0]->addresses(), ranks[1]->addresses(), ranks[2]->addresses()};
  CHECK(ranks[2]->peer_endpoints(addresses)[1] == ranks[1]->own_endpoints()[1]);
  CHECK(ranks[0]->peer_endpoints(addresses)[0] == ranks[1]->own_endpoints()[0]);
  std::string failures[3];
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 3; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        ranks[rank]->connect(addresses);
      } catch (const std::exception& error) {
        failures[rank] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& failure : failures) CHECK(failure.empty());
}

TEST_CASE("a rank that does not come is named, addresses that are cut are refused", "[runtime][net]") {
  const auto rank = make(0, 2, std::chrono::milliseconds(50));
  std::string others;
  {
    const auto gone = make(1, 2);
    others = gone->addresses();
  }
  CHECK_THROWS_WITH(rank->connect({rank->addresses(), others}), ContainsSubstring("connecting to rank 1: "));
  CHECK_THROWS_WITH(make(0, 3)->connect({"", "abc", "abc"}), ContainsSubstring("addresses are cut"));
}
