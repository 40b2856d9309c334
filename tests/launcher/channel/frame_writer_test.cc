#include "launcher/channel/frame_writer.hpp"

#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include "base/error.hpp"
#include "launcher/channel/fd_channel.hpp"
#include "tests/catch.hpp"

using namespace runjob;
namespace asio = boost::asio;

namespace {

/// A writer whose channel ends in a small pipe that the test reads.
struct Writer {
  Writer() {
    ::signal(SIGPIPE, SIG_IGN);
    int input[2];
    int output[2];
    REQUIRE(::pipe2(input, O_CLOEXEC) == 0);
    REQUIRE(::pipe2(output, O_CLOEXEC) == 0);
    ::fcntl(output[1], F_SETPIPE_SZ, 4096);
    ::fcntl(output[0], F_SETFL, O_NONBLOCK);
    input_writer.reset(input[1]);
    reader.reset(output[0]);
    channel = std::make_unique<FdChannel>(context.get_executor(), UniqueFd(input[0]), UniqueFd(output[1]));
    writer.on_bulk_sent = [this] { ++bulk_sent; };
  }

  void run() {
    asio::co_spawn(context, writer.run(*channel), [this](const std::exception_ptr& failure) {
      returned = true;
      try {
        if (failure) std::rethrow_exception(failure);
      } catch (const Error& caught) {
        error = caught.code();
      }
    });
    settle();
  }

  /// Lets the loop do what it can without a reader.
  void settle() {
    context.restart();
    context.poll();
  }

  /// Reads until nothing more comes, with the loop running meanwhile; the types of the frames, in order.
  std::vector<ToLauncher> read_all() {
    std::vector<ToLauncher> types;
    for (;;) {
      const auto space = parser.space();
      const ssize_t bytes = ::read(reader.get(), space.data, space.size);
      if (bytes <= 0) return types;
      parser.consume(static_cast<std::size_t>(bytes),
                     [&](const FrameHeader<ToLauncher>& header, std::string_view) { types.push_back(header.type); });
      settle();
    }
  }

  void send_bulk(std::size_t size) {
    FrameHeader<ToLauncher> header;
    header.type = ToLauncher::kOutput;
    auto data = std::make_unique<char[]>(size);
    std::memset(data.get(), 'x', size);
    writer.send_bulk(header, std::move(data), size);
  }

  asio::io_context context;
  UniqueFd input_writer;
  UniqueFd reader;
  std::unique_ptr<FdChannel> channel;
  FrameWriter<ToLauncher> writer{context.get_executor()};
  FrameParser<ToLauncher> parser;
  int bulk_sent = 0;
  bool returned = false;
  Errc error = Errc::kOk;
};

constexpr std::size_t kBlock = 128 * 1024;  // two of them are one batch
using Types = std::vector<ToLauncher>;

}  // namespace

TEST_CASE("frames that were queued before the channel was there are sent, control frames first", "[unit]") {
  Writer side;
  side.send_bulk(3);
  side.writer.send_control(ToLauncher::kHello, -1, "payload");
  side.run();
  CHECK(side.read_all() == Types{ToLauncher::kHello, ToLauncher::kOutput});
  CHECK(side.bulk_sent == 1);
  CHECK_FALSE(side.returned);
}

TEST_CASE("a control frame waits for one batch of bulk data and overtakes the rest", "[unit]") {
  Writer side;
  side.run();
  for (int i = 0; i < 6; ++i) side.send_bulk(kBlock);
  side.settle();  // the pipe is full now
  side.writer.send_control(ToLauncher::kExited, 0, "");
  side.settle();
  CHECK(side.writer.queued_bulk_bytes() == 6 * kBlock);
  CHECK(side.bulk_sent == 0);
  const Types types = side.read_all();
  REQUIRE(types.size() == 7);
  CHECK(types[2] == ToLauncher::kExited);
  CHECK(side.writer.queued_bulk_bytes() == 0);
  CHECK(side.bulk_sent == 3);
}

TEST_CASE("the writer is idle when the channel has taken everything, and reports it once", "[unit]") {
  Writer side;
  int idle = 0;
  side.send_bulk(kBlock);
  side.writer.when_idle([&idle] { ++idle; });
  side.run();
  CHECK(idle == 0);
  side.read_all();
  CHECK(idle == 1);
  side.writer.send_control(ToLauncher::kHello, -1, "");
  side.settle();
  CHECK(idle == 1);
}

TEST_CASE("run() returns when it may and both queues are empty, also a frame queued at the last moment", "[unit]") {
  Writer side;
  side.send_bulk(kBlock);
  side.writer.when_idle([&side] { side.writer.send_control(ToLauncher::kExited, 0, ""); });
  side.run();
  side.writer.finish();
  side.settle();
  CHECK_FALSE(side.returned);
  CHECK(side.read_all() == Types{ToLauncher::kOutput, ToLauncher::kExited});
  CHECK(side.returned);
  CHECK(side.error == Errc::kOk);
}

TEST_CASE("run() throws when the channel breaks, and the writer does not become idle", "[unit]") {
  Writer side;
  side.run();
  side.send_bulk(kBlock);
  side.writer.when_idle([] { FAIL("it is not idle"); });
  side.settle();
  side.reader.reset();
  side.settle();
  CHECK(side.returned);
  CHECK(side.error == Errc::kConnect);
}
