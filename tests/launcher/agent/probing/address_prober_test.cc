#include "launcher/agent/probing/address_prober.hpp"

#include <boost/asio/co_spawn.hpp>

#include "launcher/channel/frame.hpp"
#include "tests/catch.hpp"
#include "tests/launcher/agent/probing.hpp"

using namespace runjob;
namespace asio = boost::asio;

namespace {

/// Keeps the frames that are written to it.
class RecordingChannel : public Channel {
 public:
  asio::awaitable<std::size_t> read_some(asio::mutable_buffer) override { co_return 0; }
  asio::awaitable<void> write(std::vector<asio::const_buffer> buffers) override {
    for (const asio::const_buffer& buffer : buffers) {
      const std::string_view bytes(static_cast<const char*>(buffer.data()), buffer.size());
      parser_.feed(bytes, [this](const FrameHeader<ToLauncher>& header, std::string_view payload) {
        frames.emplace_back(header.type, payload);
      });
    }
    co_return;
  }
  void close() override {}

  std::vector<std::pair<ToLauncher, std::string>> frames;

 private:
  FrameParser<ToLauncher> parser_;
};

/// One agent's prober, with its frames running in the loop.
struct Host {
  explicit Host(asio::io_context& context)
      : loop(context), writer(context.get_executor()), prober(context.get_executor(), writer) {
    asio::co_spawn(context, writer.run(channel), [](const std::exception_ptr&) {});
  }
  /// The payload of the next frame that it sends.
  std::string next(ToLauncher type) {
    loop.restart();
    while (channel.frames.empty() && loop.run_one() != 0) {
    }
    REQUIRE_FALSE(channel.frames.empty());
    const auto frame = channel.frames.front();
    channel.frames.erase(channel.frames.begin());
    CHECK(frame.first == type);
    return frame.second;
  }

  asio::io_context& loop;
  RecordingChannel channel;
  FrameWriter<ToLauncher> writer;
  AddressProber prober;
};

}  // namespace

TEST_CASE("two agents try each other as the launcher's frames say", "[net]") {
  asio::io_context context;
  Host a(context), b(context);
  a.prober.on_frame(ToAgent::kProbeListen, encode(ProbeListen{token_of('a'), {"127.0.0.2", "127.0.0.3"}, 4}));
  const auto listening = decode<ProbeListening>(a.next(ToLauncher::kProbeListening));
  REQUIRE(listening.ports.size() == 2);
  CHECK(listening.probe == 4);
  ProbeConnect connect;
  connect.probe = 5;
  connect.targets = {{0, "127.0.0.2", listening.ports[0].port, token_of('a')},
                     {0, "127.0.0.3", listening.ports[1].port, token_of('b')}};
  b.prober.on_frame(ToAgent::kProbeConnect, encode(connect));
  const auto results = decode<ProbeResults>(b.next(ToLauncher::kProbeResults));
  CHECK(results.outcomes == std::vector<ProbeOutcome>{kReached, kStranger});
  CHECK(results.probe == 5);

  a.prober.on_frame(ToAgent::kProbeEnd, {});
  b.prober.on_frame(ToAgent::kProbeConnect, encode(connect));  // a second round, and nobody is there any more
  CHECK(decode<ProbeResults>(b.next(ToLauncher::kProbeResults)).outcomes ==
        std::vector<ProbeOutcome>{failed_with(ECONNREFUSED), failed_with(ECONNREFUSED)});
  CHECK_THROWS(a.prober.on_frame(ToAgent::kProbeListen, "garbage"));
}
