#include "launcher/sealed_channel/sealed_channel.hpp"

#include <fcntl.h>
#include <future>
#include <optional>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>

#include "base/error.hpp"
#include "launcher/channel/fd_channel.hpp"
#include "tests/catch.hpp"

using namespace runjob;

namespace {

namespace asio = boost::asio;

SealKeys keys(unsigned char sending, unsigned char receiving) {
  SealKeys keys;
  keys.sending.bytes().fill(sending);
  keys.receiving.bytes().fill(receiving);
  return keys;
}

/// Two sealed channels over a socket pair, or a sealed one and a plain end.
class Ends {
 public:
  Ends() {
    int ends[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    one_.reset(ends[0]);
    other_.reset(ends[1]);
  }

  std::unique_ptr<SealedChannel> one(std::string received = {}) {
    return std::make_unique<SealedChannel>(channel(std::move(one_)), keys(1, 2), std::move(received));
  }
  std::unique_ptr<SealedChannel> other() {
    return std::make_unique<SealedChannel>(channel(std::move(other_)), keys(2, 1));
  }
  UniqueFd plain() { return std::move(other_); }

  /// What the coroutine returns or throws.
  template <class T>
  T run(asio::awaitable<T> work) {
    std::future<T> result = asio::co_spawn(context_, std::move(work), asio::use_future);
    context_.restart();
    context_.run();
    return result.get();
  }

 private:
  std::unique_ptr<Channel> channel(UniqueFd socket) {
    UniqueFd copy(::fcntl(socket.get(), F_DUPFD_CLOEXEC, 3));
    return std::make_unique<FdChannel>(context_.get_executor(), std::move(copy), std::move(socket));
  }

  asio::io_context context_{1};
  UniqueFd one_, other_;
};

asio::awaitable<std::string> read(Channel& channel, std::size_t count) {
  std::string text;
  std::string block(7, '\0');
  while (text.size() < count) {
    const std::size_t bytes = co_await channel.read_some(asio::buffer(block));
    if (bytes == 0) break;
    text += block.substr(0, bytes);
  }
  co_return text;
}

asio::awaitable<void> write(Channel& channel, std::string first, std::string second) {
  std::vector<asio::const_buffer> buffers{asio::buffer(first), asio::buffer(second)};
  co_await channel.write(std::move(buffers));
}

}  // namespace

TEST_CASE("a sealed channel carries bytes both ways, in pieces of any size", "[unit]") {
  Ends ends;
  const auto one = ends.one();
  const auto other = ends.other();
  ends.run(write(*one, "there ", "it goes"));
  CHECK(ends.run(read(*other, 13)) == "there it goes");
  ends.run(write(*other, "", "and back"));
  CHECK(ends.run(read(*one, 8)) == "and back");
  one->close();
  CHECK(ends.run(read(*other, 1)).empty());
}

TEST_CASE("nothing of the text can be seen on the way", "[unit]") {
  Ends ends;
  const auto one = ends.one();
  ends.run(write(*one, "secret", ""));
  std::string seen(1000, '\0');
  const UniqueFd wire = ends.plain();
  seen.resize(static_cast<std::size_t>(::read(wire.get(), seen.data(), seen.size())));
  CHECK(seen.size() == 2 + 6 + 16);
  CHECK(seen.find("secret") == std::string::npos);
}

TEST_CASE("the first sealed record confirms the other end, and is not lost", "[unit]") {
  Ends ends;
  const auto one = ends.one();
  const auto other = ends.other();
  ends.run(write(*other, "hello", ""));
  ends.run(one->confirm());
  CHECK(ends.run(read(*one, 5)) == "hello");
}

TEST_CASE("what had been received before belongs to the stream", "[unit]") {
  std::string received;
  SealKey key;
  key.bytes().fill(2);
  Sealer sealer(key);
  sealer.seal("early", received);
  Ends ends;
  const auto one = ends.one(received);
  ends.run(one->confirm());
  CHECK(ends.run(read(*one, 5)) == "early");
}

TEST_CASE("an end that cannot seal is refused", "[unit]") {
  Ends ends;
  const auto one = ends.one();
  UniqueFd wire = ends.plain();
  SECTION("because it sends something else") {
    const std::string garbage = std::string("\0\x20", 2) + std::string(32, 'x');
    REQUIRE(::write(wire.get(), garbage.data(), garbage.size()) == static_cast<ssize_t>(garbage.size()));
    CHECK_THROWS_WITH(ends.run(one->confirm()),
                      "bytes on the connection that the other side has not sealed with the job's key");
  }
  SECTION("because it hangs up") {
    wire.reset();
    CHECK_THROWS_WITH(ends.run(one->confirm()), "it hung up before it had shown that it holds the job's key");
  }
}
