#include "runtime/collectives/gloo/gloo_context.hpp"

#include <future>
#include <memory>

#include <gloo/transport/unbound_buffer.h>

#include "base/error.hpp"
#include "tests/catch.hpp"
#include "tests/runtime/collectives/hierarchical/thread_transport.hpp"

using namespace runjob::runtime;

TEST_CASE("Gloo's messages are the transport's: parts, whole buffers and empty ones", "[runtime]") {
  ThreadNetwork network;
  ThreadTransport near(network, 0), far(network, 1);
  GlooContext sender(0, 2, near), receiver(1, 2, far);
  int numbers[4] = {1, 2, 3, 4}, got[4] = {};
  const auto from = sender.createUnboundBuffer(numbers, sizeof numbers);
  const auto to = receiver.createUnboundBuffer(got, sizeof got);
  from->send(1, 7, 0, sizeof(int));
  from->send(1, 8, 0, 0);
  from->send(1, 9, sizeof(int));  // the rest
  to->recv(0, 7, 0, sizeof(int));
  to->recv(0, 8, 0, 0);
  to->recv(std::vector<int>{0}, 9, sizeof(int));
  int peer = -1;
  for (int i = 0; i < 3; ++i) CHECK((from->waitSend(&peer) && peer == 1));
  for (int i = 0; i < 3; ++i) CHECK((to->waitRecv(&peer) && peer == 0));
  CHECK(std::vector<int>(got, got + 4) == std::vector<int>{1, 2, 3, 4});
  CHECK(sender.getPair(1) != nullptr);
  CHECK_THROWS_AS(to->recv(std::vector<int>{0, 1}, 9), runjob::Error);
  CHECK_THROWS_AS(to->waitRecv(), runjob::Error);
}
