#include "launcher/ssh/channel_ssh.hpp"

#include <array>
#include <cstdint>
#include <optional>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/error.hpp"
#include "tests/catch.hpp"
#include "tests/launcher/ssh/loop.hpp"
#include "tests/launcher/ssh/test_client.hpp"

using namespace runjob;
namespace asio = boost::asio;

namespace {

/// A stream of bytes that never repeats, so that a lost, doubled or moved piece changes all that follows.
class Stream {
 public:
  char next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return static_cast<char>(state_);
  }

 private:
  std::uint64_t state_ = 88172645463325252u;
};

struct Outcome {
  std::size_t bytes = 0;
  bool intact = true;
  std::string error;
  bool ended = false;
};

asio::awaitable<void> read_stream(Channel& channel, std::size_t total, Outcome& outcome) {
  Stream expected;
  std::vector<char> buffer(100'000);
  while (outcome.bytes < total) {
    const std::size_t bytes = co_await channel.read_some(asio::buffer(buffer));
    if (bytes == 0) break;
    for (std::size_t i = 0; i < bytes; ++i) outcome.intact = outcome.intact && buffer[i] == expected.next();
    outcome.bytes += bytes;
  }
}

/// In pieces of all sizes, several in a write, as frames are.
asio::awaitable<void> write_stream(Channel& channel, std::size_t total, Outcome& outcome) {
  Stream stream;
  std::array<std::vector<char>, 3> pieces;
  const std::array<std::size_t, 7> sizes = {20, 100'000, 1, 0, 32'000, 300'000, 7};
  for (std::size_t turn = 0; outcome.bytes < total;) {
    std::vector<asio::const_buffer> buffers;
    std::size_t bytes = 0;
    for (std::vector<char>& piece : pieces) {
      piece.resize(std::min(sizes[turn++ % sizes.size()], total - outcome.bytes - bytes));
      for (char& c : piece) c = stream.next();
      buffers.push_back(asio::buffer(piece));
      bytes += piece.size();
    }
    co_await channel.write(buffers);
    outcome.bytes += bytes;
  }
}

/// Runs `work` beside others and notes how it ends.
void start(asio::io_context& context, asio::awaitable<void> work, Outcome& outcome) {
  asio::co_spawn(context, std::move(work), [&](const std::exception_ptr& error) {
    outcome.ended = true;
    try {
      if (error) std::rethrow_exception(error);
    } catch (const Error& failure) {
      outcome.error = failure.what();
    }
  });
}

/// A client that is let in, and its connector.
struct Connection {
  explicit Connection(const std::string& sshd_config = "") : sshd({"ed25519"}, sshd_config) {
    client.know(sshd);
    client.make_identity(sshd);
    connector.emplace(client.context.get_executor(), client.options);
  }

  std::unique_ptr<Channel> open(const std::string& command) {
    const RemoteMessage on_message = client.collect_messages();
    return run_on(client.context, connector->open(client.target(sshd.port()), command, on_message));
  }

  TestSshd sshd;
  TestClient client;
  std::optional<SshConnector> connector;
};

constexpr std::size_t kHundredMegabytes = 100'000'000;

}  // namespace

TEST_CASE("a hundred megabytes go both ways at once and arrive as they were", "[ssh]") {
  Connection connection;
  const std::unique_ptr<Channel> channel = connection.open("cat");
  Outcome in, out;
  start(connection.client.context, read_stream(*channel, kHundredMegabytes, in), in);
  start(connection.client.context, write_stream(*channel, kHundredMegabytes, out), out);
  REQUIRE(run_until(connection.client.context, [&] { return in.ended && out.ended; }));
  CHECK(out.error.empty());
  CHECK(in.error.empty());
  CHECK(in.bytes == kHundredMegabytes);
  CHECK(in.intact);
}

TEST_CASE("new keys in between disturb neither direction", "[ssh]") {
  constexpr std::size_t kTotal = 20'000'000;
  Connection connection("RekeyLimit 1M");
  const std::unique_ptr<Channel> channel = connection.open("cat");
  Outcome in, out;
  start(connection.client.context, read_stream(*channel, kTotal, in), in);
  start(connection.client.context, write_stream(*channel, kTotal, out), out);
  REQUIRE(run_until(connection.client.context, [&] { return in.ended && out.ended; }));
  CHECK(out.error.empty());
  CHECK(in.error.empty());
  CHECK(in.bytes == kTotal);
  CHECK(in.intact);
}

TEST_CASE("a writer waits for a reader that does not read, and neither is lost", "[ssh]") {
  constexpr std::size_t kTotal = 8'000'000;  // more than windows and sockets hold
  Connection connection;
  const std::unique_ptr<Channel> channel = connection.open("head -c 1 >&2; exec cat");
  Outcome in, out;
  start(connection.client.context, write_stream(*channel, kTotal, out), out);
  connection.client.context.restart();
  while (!out.ended && connection.client.context.run_one_for(std::chrono::milliseconds(200)) != 0) {
  }
  CHECK_FALSE(out.ended);
  Stream expected;
  expected.next();  // what head took
  start(connection.client.context, read_stream(*channel, kTotal - 1, in), in);
  REQUIRE(run_until(connection.client.context, [&] { return in.ended && out.ended; }));
  CHECK(in.bytes == kTotal - 1);
  CHECK(out.bytes == kTotal);
  CHECK(out.error.empty());
}

TEST_CASE("the end of the command's output is the end of the stream, after all of it", "[ssh]") {
  Connection connection;
  const std::string output =
      connection.client.run(connection.sshd.port(), "head -c 3000000 /dev/zero; echo last words >&2; exit 1");
  CHECK(output == std::string(3'000'000, '\0'));
  CHECK(connection.client.messages == std::vector<std::string>{"last words"});
}

TEST_CASE("a command that says much on its standard error holds up nothing", "[ssh]") {
  Connection connection;
  CHECK(connection.client.run(connection.sshd.port(), "yes error | head -n 1000000 >&2; echo out") == "out\n");
  CHECK(connection.client.messages.size() == 1'000'000);
}

TEST_CASE("closing ends a read and a write that are under way", "[ssh]") {
  Connection connection;
  asio::io_context& context = connection.client.context;
  std::unique_ptr<Channel> channel = connection.open("cat >/dev/null");
  Outcome in, out;
  start(context, read_stream(*channel, 1, in), in);
  start(context, write_stream(*channel, kHundredMegabytes, out), out);
  REQUIRE(run_until(context, [&] { return out.bytes != 0; }));
  SECTION("by close()") {
    channel->close();
  }
  SECTION("by its end") {
    channel.reset();
  }
  REQUIRE(run_until(context, [&] { return in.ended && out.ended; }));
  CHECK(in.error == "the connection was closed");
  CHECK(out.error == "the connection was closed");
}

TEST_CASE("nobody hears from a channel that is gone", "[ssh]") {
  Connection connection;
  asio::io_context& context = connection.client.context;
  std::unique_ptr<Channel> channel = connection.open("yes message >&2");
  Outcome in;
  start(context, read_stream(*channel, 1, in), in);
  REQUIRE(run_until(context, [&] { return connection.client.messages.size() > 1000; }));
  channel.reset();
  const std::size_t heard = connection.client.messages.size();
  REQUIRE(run_until(context, [&] { return in.ended; }));
  CHECK(connection.client.messages.size() == heard);
}

TEST_CASE("a closed channel neither reads nor writes", "[ssh]") {
  Connection connection;
  const std::unique_ptr<Channel> channel = connection.open("cat");
  channel->close();
  channel->close();
  Outcome in, out;
  start(connection.client.context, read_stream(*channel, 1, in), in);
  start(connection.client.context, write_stream(*channel, 1, out), out);
  REQUIRE(run_until(connection.client.context, [&] { return in.ended && out.ended; }));
  CHECK(in.error == "the connection was closed");
  CHECK(out.error == "the connection was closed");
}

TEST_CASE("a loop that ends takes everything that is under way with it", "[ssh]") {
  TestSshd sshd;
  Outcome in, out;
  std::unique_ptr<Channel> channel;
  TestClient client;
  client.know(sshd);
  client.make_identity(sshd);
  {
    asio::io_context context;
    SshConnector connector(context.get_executor(), client.options);
    channel = run_on(context, connector.open(client.target(sshd.port()), "cat", nullptr));
    start(context, read_stream(*channel, kHundredMegabytes, in), in);
    start(context, write_stream(*channel, kHundredMegabytes, out), out);
    REQUIRE(run_until(context, [&] { return in.bytes != 0; }));
    channel.reset();
  }
  CHECK_FALSE(in.ended);
}

TEST_CASE("a host that vanishes is an error of the reader", "[ssh]") {
  Connection connection;
  asio::io_context& context = connection.client.context;
  const std::unique_ptr<Channel> channel = connection.open("cat");
  Outcome in, out;
  start(context, read_stream(*channel, kHundredMegabytes, in), in);
  start(context, write_stream(*channel, kHundredMegabytes, out), out);
  REQUIRE(run_until(context, [&] { return in.bytes >= 1'000'000; }));
  connection.sshd.kill();
  REQUIRE(run_until(context, [&] { return in.ended; }));
  CHECK((in.error == "the other side closed the connection" || in.error == "Connection reset by peer"));
  CHECK(in.intact);
  CHECK(in.bytes < kHundredMegabytes);
  channel->close();
  CHECK(run_until(context, [&] { return out.ended; }));
}

TEST_CASE("a host that opens no session says so", "[ssh]") {
  Connection connection("MaxSessions 0");
  CHECK_THAT(connection.client.error(connection.sshd.port()), ContainsSubstring("the host does not open a session: "));
}
