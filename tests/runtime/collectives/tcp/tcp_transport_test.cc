#include "runtime/collectives/tcp/tcp_transport.hpp"

#include <atomic>
#include <csignal>
#include <future>
#include <numeric>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "base/process/time_limit.hpp"
#include "runtime/links/silence_watch.hpp"
#include "tests/catch.hpp"
#include "tests/runtime/collectives/connected_ranks.hpp"

using namespace runjob::runtime;
using runjob::Errc;
using runjob::Status;
using runjob::TimeLimit;

namespace {

/// Members of one group, all in this process, where everybody is everybody's peer.
std::vector<std::unique_ptr<TcpTransport>> group(int size, std::chrono::milliseconds timeout = std::chrono::seconds(60),
                                                 bool encrypts = false) {
  return connected_ranks(size, [&](int member) {
    TransportOptions options;
    options.member = member;
    options.bind_address = "127.0.0.1";
    options.operation_timeout = timeout;
    options.encrypts = encrypts;
    for (int peer = 0; peer < size; ++peer) {
      options.ranks.push_back(10 * peer);
      if (peer == member) continue;
      options.short_peers.push_back(peer);
      options.long_peers.push_back(peer);
    }
    auto transport = std::make_unique<TcpTransport>(options);
    if (member == 0) transport->spin_for(std::chrono::microseconds(50));
    return transport;
  });
}

/// Counts the SIGPIPEs that this process gets, which would end a program of a user.
class SigpipeCount {
 public:
  SigpipeCount() {
    count_ = 0;
    struct sigaction counting {};
    counting.sa_handler = [](int) { count_ = count_ + 1; };
    ::sigaction(SIGPIPE, &counting, &before_);
  }
  ~SigpipeCount() { ::sigaction(SIGPIPE, &before_, nullptr); }
  SigpipeCount(const SigpipeCount&) = delete;
  SigpipeCount& operator=(const SigpipeCount&) = delete;

  static int count() { return count_; }

 private:
  static inline volatile std::sig_atomic_t count_ = 0;
  struct sigaction before_ {};
};

bool sigpipe_is_blocked() {
  sigset_t mask;
  ::pthread_sigmask(SIG_BLOCK, nullptr, &mask);
  return ::sigismember(&mask, SIGPIPE) == 1;
}

}  // namespace

TEST_CASE("short messages come in their order, to both at the same time", "[runtime][net]") {
  const auto members = group(2, std::chrono::seconds(60), GENERATE(false, true));
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

TEST_CASE("a flush waits until the connections have taken all that is sent", "[runtime][net]") {
  const auto members = group(2);
  const std::vector<char> message(65536, 'x');
  constexpr int kNumber = 400;  // 25 MiB: more than a connection takes
  for (int i = 0; i < kNumber; ++i) REQUIRE(members[0]->send_short(1, message.data(), message.size()).ok());
  auto flushed = std::async(std::launch::async, [&] { return members[0]->flush(); });
  std::vector<char> received(message.size());
  for (int i = 0; i < kNumber; ++i) {
    REQUIRE(members[1]->receive_short(0, received.data(), received.size()).ok());
    REQUIRE(received == message);
  }
  CHECK(flushed.get().ok());
  members[1]->abort();
  for (int i = 0; i < kNumber && members[0]->send_short(1, message.data(), message.size()).ok(); ++i) {
  }
  CHECK_FALSE(members[0]->flush().ok());
}

TEST_CASE("whoever waits elsewhere sees that a member moves bytes", "[runtime][net]") {
  const auto members = group(2);
  std::atomic<std::uint64_t> sender{0}, receiver{0};
  members[0]->count_moves_in(sender);
  members[1]->count_moves_in(receiver);
  std::vector<char> data(8 << 20), received(data.size());  // more than a connection takes at once
  auto from = members[0]->buffer(data.data(), data.size()), to = members[1]->buffer(received.data(), received.size());
  REQUIRE(from->send(1, 1, 0, data.size()).ok());
  REQUIRE(to->receive(0, 1, 0, received.size()).ok());
  auto sending = std::async(std::launch::async, [&] { return from->wait_sent().ok(); });
  CHECK(to->wait_received().ok());
  CHECK(sending.get());
  CHECK(sender > 0);
  CHECK(receiver > 0);
}

TEST_CASE("long messages find their tags", "[runtime][net]") {
  const auto members = group(3, std::chrono::seconds(60), GENERATE(false, true));
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
  auto sending = std::async(std::launch::async, [&] { return first->wait_sent().ok() && second->wait_sent().ok(); });
  for (auto* buffer : {&low, &high}) CHECK((*buffer)->wait_received().ok());
  CHECK(sending.get());
  CHECK(received[0] == 200000);
  CHECK(received[100000] == 100000);
  CHECK(received.back() == 199999);
}

TEST_CASE("an abort ends every wait, and a member that goes ends its peers', which name its rank", "[runtime][net]") {
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
    CHECK_THAT(status.message(), ContainsSubstring("rank 10 at 127.0.0.1: its process has closed the connection"));
  }
  CHECK_FALSE(members[0]->receive_short(1, &byte, 1).ok());
  buffer.reset();
}

TEST_CASE("a silent member is a timeout that names its rank", "[runtime][net]") {
  const auto members = group(2, std::chrono::milliseconds(20));
  char byte = 0;
  auto buffer = members[0]->buffer(&byte, 1);
  const Status status = [&] {
    if (GENERATE(true, false)) return members[0]->receive_short(1, &byte, 1);
    CHECK(buffer->receive(1, 3, 0, 1).ok());
    return buffer->wait_received();
  }();
  CHECK(status.code() == Errc::kTimeout);
  CHECK_THAT(status.message(), ContainsSubstring("waited 0.02 s for rank 10"));
}

TEST_CASE("the time for which the process was stopped is not part of a wait", "[runtime][net]") {
  constexpr std::chrono::milliseconds kMoment{100}, kLimit = SilenceWatch::kLookEvery + TimeLimit::kStandstill;
  const pid_t child = ::fork();
  if (child == 0) {
    const auto members = group(2, kLimit);
    char byte = 1;
    auto waited = std::async(std::launch::async, [&] { return members[0]->receive_short(1, &byte, 1); });
    std::this_thread::sleep_for(kMoment);
    ::kill(::getpid(), SIGSTOP);
    // The rest of a sleep begins when the process goes on, and then the other thread looks at the time.
    std::this_thread::sleep_for(SilenceWatch::kLookEvery);
    const bool is_sent = members[1]->send_short(0, "x", 1).ok() && members[1]->flush().ok();
    ::_exit(is_sent && waited.get().ok() && byte == 'x' ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, WUNTRACED);
  CHECK(WIFSTOPPED(status));
  std::this_thread::sleep_for(kLimit);
  ::kill(child, SIGCONT);
  ::waitpid(child, &status, 0);
  CHECK(status == 0);
}

TEST_CASE("writing to a member that is gone is an error and no SIGPIPE", "[runtime][net]") {
  const SigpipeCount signals;
  char byte = 0;
  SECTION("short messages") {
    auto members = group(2);
    members[1].reset();
    Status status;
    // The first one may still leave: the answer to it is that nobody reads.
    for (int i = 0; i < 1000 && status.ok(); ++i) status = members[0]->send_short(1, &byte, 1);
    CHECK(status.code() == Errc::kPeerLost);
    CHECK_FALSE(members[0]->send_short(1, &byte, 1).ok());
  }
  SECTION("long messages, in both directions") {
    const bool sends = GENERATE(true, false);
    auto members = group(2);
    members[0]->abort();  // its sockets are shut down: whatever Gloo writes has no way out
    auto buffer = members[0]->buffer(&byte, 1);
    const Status status = sends ? buffer->send(1, 3, 0, 1) : buffer->receive(1, 3, 0, 1);
    CHECK_FALSE((status.ok() ? (sends ? buffer->wait_sent() : buffer->wait_received()) : status).ok());
  }
  CHECK(signals.count() == 0);
  CHECK_FALSE(sigpipe_is_blocked());
}

TEST_CASE("an address that is not this host's is refused when the transport is made", "[runtime][net]") {
  TransportOptions options;
  options.ranks = {0, 1};
  options.bind_address = "no such host";
  CHECK_THROWS_WITH(TcpTransport(options), "'no such host' is no numeric address: Name or service not known");
  options.bind_address = "192.0.2.1";  // nobody's: RFC 5737
  CHECK_THROWS_WITH(TcpTransport(options), "listening on 192.0.2.1: Cannot assign requested address");
}
