#include "launcher/agent/output_pipe.hpp"

#include <fcntl.h>
#include <string>
#include <sys/ioctl.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include "launcher/processes/pipe.hpp"
#include "tests/catch.hpp"

using namespace runjob;

TEST_CASE("a pipe is idle only when all of its bytes have been sent", "[unit]") {
  constexpr int kBytes = 256 * 1024;
  Pipe pipe = make_pipe();
  REQUIRE(::fcntl(pipe.writer.get(), F_SETPIPE_SZ, kBytes) >= kBytes);
  const std::string text(kBytes, 'x');
  REQUIRE(::write(pipe.writer.get(), text.data(), text.size()) == kBytes);
  const int reader = pipe.reader.get();
  const auto left = [reader] {
    int bytes = -1;
    ::ioctl(reader, FIONREAD, &bytes);
    return bytes;
  };
  boost::asio::io_context context;
  FrameWriter<ToLauncher> writer(context.get_executor());
  OutputPipe output(context.get_executor(), std::move(pipe.reader), 0, Stream::kStdout, 2 * kBytes, writer);
  boost::asio::co_spawn(context, output.run(), [](const std::exception_ptr&) {});
  CHECK_FALSE(output.idle());
  while (context.poll_one() != 0) {
    CAPTURE(left());
    CHECK_FALSE((output.idle() && left() > 0));
  }
  CHECK(left() == 0);
  CHECK(output.idle());
  CHECK(writer.queued_bulk_bytes() == kBytes);
  output.close();
  context.restart();
  context.poll();
}
