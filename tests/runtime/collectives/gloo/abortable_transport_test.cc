#include "runtime/collectives/gloo/abortable_transport.hpp"

#include <future>
#include <thread>

#include <gloo/transport/tcp/device.h>

#include "tests/catch.hpp"

using namespace runjob::runtime;

namespace {

/// Two connected ranks in this process.
struct Pair {
  std::unique_ptr<AbortableTransport> ranks[2];
  Pair() {
    gloo::transport::tcp::attr attributes;
    attributes.hostname = "127.0.0.1";
    const auto device = gloo::transport::tcp::CreateDevice(attributes);
    std::vector<char> addresses[2];
    for (int rank = 0; rank < 2; ++rank) {
      ranks[rank] = std::make_unique<AbortableTransport>(device->createContext(rank, 2));
      ranks[rank]->set_timeout(std::chrono::seconds(30));
      addresses[rank] = ranks[rank]->createPair(1 - rank)->address().bytes();
    }
    auto other = std::async(std::launch::async, [&] { ranks[1]->getPair(0)->connect(addresses[0]); });
    ranks[0]->getPair(1)->connect(addresses[1]);
    other.get();
  }
};

/// The text of what `call` throws; "" when nothing.
template <class Call>
std::future<std::string> thrown_by(Call call) {
  return std::async(std::launch::async, [call]() -> std::string {
    try {
      call();
      return "";
    } catch (const std::exception& error) {
      return error.what();
    }
  });
}

}  // namespace

TEST_CASE("data passes as through Gloo's own transport", "[runtime][net]") {
  Pair pair;
  int sent = 42, received = 0;
  const auto out = pair.ranks[0]->createUnboundBuffer(&sent, sizeof sent);
  const auto in = pair.ranks[1]->createUnboundBuffer(&received, sizeof received);
  out->send(1, 7);
  in->recv(0, 7);
  out->waitSend();
  int from = -1;
  CHECK(in->waitRecv(&from));
  CHECK(from == 0);
  CHECK(received == 42);
}

TEST_CASE("an abort ends waits that have begun, that begin later, and those of later buffers", "[runtime][net]") {
  Pair pair;
  int value = 0;
  const auto sending = pair.ranks[0]->createUnboundBuffer(&value, sizeof value);
  const auto receiving = pair.ranks[0]->createUnboundBuffer(&value, sizeof value);
  sending->send(1, 1);  // nobody receives it
  receiving->recv(1, 2);
  auto send = thrown_by([&] { sending->waitSend(); });
  auto receive = thrown_by([&] { receiving->waitRecv(); });
  pair.ranks[0]->abort();
  CHECK(send.get() == "aborted");
  CHECK(receive.get() == "aborted");
  CHECK(thrown_by([&] { sending->waitSend(); }).get() == "aborted");
  const auto late = pair.ranks[0]->createUnboundBuffer(&value, sizeof value);
  CHECK(thrown_by([&] { late->waitRecv(); }).get() == "aborted");
}
