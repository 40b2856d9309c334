#include "runtime/collectives/gloo/gloo_transport.hpp"

#include <future>
#include <numeric>

#include "runtime/collectives/gloo/sigpipe_block.hpp"
#include "tests/catch.hpp"

using namespace runjob::runtime;
using runjob::Errc;
using runjob::Status;

namespace {

/// Members of one group, all in this process, where everybody is everybody's peer.
std::vector<std::unique_ptr<GlooTransport>> group(int size,
                                                  std::chrono::milliseconds timeout = std::chrono::seconds(60)) {
  std::vector<std::unique_ptr<GlooTransport>> members;
  std::vector<std::string> addresses;
  for (int member = 0; member < size; ++member) {
    TransportOptions options;
    options.member = member;
    options.bind_address = "127.0.0.1";
    options.operation_timeout = timeout;
    options.spin = std::chrono::microseconds(member == 0 ? 50 : 0);
    for (int peer = 0; peer < size; ++peer) {
      options.ranks.push_back(10 * peer);
      if (peer == member) continue;
      options.short_peers.push_back(peer);
      options.long_peers.push_back(peer);
    }
    members.push_back(std::make_unique<GlooTransport>(options));
    addresses.push_back(members.back()->address());
  }
  std::vector<std::future<Status>> connected;
  for (const auto& member : members)
    connected.push_back(std::async(std::launch::async, [&] { return member->connect(addresses); }));
  for (auto& status : connected) REQUIRE(status.get().message().empty());
  return members;
}

}  // namespace

TEST_CASE("short messages come in their order, to both at the same time", "[runtime][net]") {
  const SigpipeBlock block;
  const auto members = group(2);
  const auto talk = [&](int member) -> Status {
    for (int i = 0; i < 200; ++i) {
      std::vector<char> mine(static_cast<std::size_t>(1 + i * 327 % 65536), static_cast<char>(i + member)),
          theirs(mine.size());
      Status status = members[static_cast<std::size_t>(member)]->send_short(1 - member, mine.data(), mine.size());
      if (!status.ok()) return status;
      status = members[static_cast<std::size_t>(member)]->receive_short(1 - member, theirs.data(), theirs.size());
      if (!status.ok()) return status;
      if (theirs != std::vector<char>(mine.size(), static_cast<char>(i + 1 - member)))
        return Status(Errc::kBug, "bytes");
    }
    return {};
  };
  auto other = std::async(std::launch::async, talk, 1);
  CHECK(talk(0).message().empty());
  CHECK(other.get().message().empty());
}

TEST_CASE("long messages find their tags", "[runtime][net]") {
  const SigpipeBlock block;
  const auto members = group(3);
  std::vector<int> data(3 * 100000), received(2 * 100000);
  std::iota(data.begin(), data.end(), 0);
  constexpr std::size_t kBytes = 100000 * sizeof(int);
  auto first = members[0]->buffer(data.data(), 3 * kBytes), second = members[0]->buffer(data.data(), 3 * kBytes);
  auto low = members[2]->buffer(received.data(), 2 * kBytes), high = members[2]->buffer(received.data(), 2 * kBytes);
  CHECK(first->wait_sent().ok());  // nothing was sent
  CHECK(first->send(2, 7, kBytes, kBytes).ok());
  CHECK(second->send(2, std::uint64_t{5} << 40, 2 * kBytes, kBytes).ok());
  CHECK(low->receive(0, std::uint64_t{5} << 40, 0, kBytes).ok());
  CHECK(high->receive(0, 7, kBytes, kBytes).ok());
  for (auto* buffer : {&low, &high}) CHECK((*buffer)->wait_received().ok());
  for (auto* buffer : {&first, &second}) CHECK((*buffer)->wait_sent().ok());
  CHECK(received[0] == 200000);
  CHECK(received[100000] == 100000);
  CHECK(received.back() == 199999);
}

TEST_CASE("an abort ends every wait, and a member that goes ends its peers', which name its rank", "[runtime][net]") {
  const SigpipeBlock block;
  auto members = group(2);
  char byte = 0;
  const bool is_short = GENERATE(true, false), aborts = GENERATE(true, false);
  auto buffer = members[0]->buffer(&byte, 1);
  auto waiting = std::async(std::launch::async, [&] {
    if (is_short) return members[0]->receive_short(1, &byte, 1);
    const Status status = buffer->receive(1, 3, 0, 1);
    return status.ok() ? buffer->wait_received() : status;
  });
  if (aborts) {
    members[0]->abort();
    CHECK(waiting.get().code() == Errc::kAborted);
  } else {
    members[1].reset();
    const Status status = waiting.get();
    CHECK(status.code() == Errc::kPeerLost);
    CHECK_THAT(status.message(), ContainsSubstring("rank 10: Gloo: "));
  }
  CHECK_FALSE(members[0]->receive_short(1, &byte, 1).ok());
  buffer.reset();
}

TEST_CASE("a silent member is a timeout that names its rank", "[runtime][net]") {
  const SigpipeBlock block;
  const auto members = group(2, std::chrono::milliseconds(20));
  char byte = 0;
  const Status short_status = members[0]->receive_short(1, &byte, 1);
  CHECK(short_status.code() == Errc::kTimeout);
  CHECK_THAT(short_status.message(), ContainsSubstring("waited 0.02 s for rank 10"));
  auto buffer = members[0]->buffer(&byte, 1);
  CHECK(buffer->receive(1, 3, 0, 1).ok());
  const Status long_status = buffer->wait_received();
  CHECK(long_status.code() == Errc::kTimeout);
  CHECK_THAT(long_status.message(), ContainsSubstring("rank 10"));
}
