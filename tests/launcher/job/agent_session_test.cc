#include "launcher/job/agent_session.hpp"

#include <memory>
#include <optional>
#include <vector>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/error.hpp"
#include "launcher/job/channel_local.hpp"
#include "tests/catch.hpp"
#include "tests/launcher/frame_peer.hpp"
#include "tests/launcher/manual_clock.hpp"

using namespace runjob;
namespace asio = boost::asio;

namespace {

/// Opens the channel once `gate` has been cancelled.
asio::awaitable<ReadyChannel> open_after(asio::steady_timer& gate, UniqueFd& socket, std::string received) {
  const auto [cancelled] = co_await gate.async_wait(asio::as_tuple(asio::use_awaitable));
  static_cast<void>(cancelled);
  co_return ReadyChannel{local_channel(gate.get_executor(), std::move(socket)), std::move(received)};
}

asio::awaitable<ReadyChannel> refuse(const char* reason) {
  throw Error(Errc::kConnect, reason);
  co_return ReadyChannel{};
}

/// A session of host 3, and the scripted agent at the other end of its channel.
struct Session : AgentSession::Events {
  explicit Session(std::pair<UniqueFd, UniqueFd> ends = socket_pair())
      : ours(std::move(ends.first)), agent(std::move(ends.second)) {}

  void on_frame(int host, const FrameHeader<ToLauncher>& header, std::string_view payload) override {
    CHECK(host == 3);
    events += "frame " + std::to_string(static_cast<int>(header.type)) + " " + std::string(payload) + "; ";
  }
  void on_batch_end(int host) override {
    CHECK(host == 3);
    events += "batch; ";
  }
  void on_end(int host, const std::string& how) override {
    CHECK(host == 3);
    events += "end: " + how + "; ";
  }

  void start() {
    session.start(local_channel(context.get_executor(), std::move(ours)));
    settle();
  }
  void open(const std::string& received = "") {
    session.open([this, received] { return open_after(gate, ours, received); });
    settle();
  }
  void let_open() {
    gate.cancel();
    settle();
  }
  /// Lets the loop do what it can.
  void settle() {
    context.restart();
    context.poll();
  }
  std::string take_events() { return std::exchange(events, {}); }

  asio::io_context context;
  asio::steady_timer gate{context, asio::steady_timer::time_point::max()};
  ManualClock clock;
  UniqueFd ours;
  AgentPeer agent;
  std::string events;
  AgentSession session{context, 3, *this, clock.make_alarm()};
};

}  // namespace

TEST_CASE("frames of both directions pass a session, those sent early after the channel is open", "[unit]") {
  Session side;
  side.session.send(ToAgent::kLaunch, -1, "launch");
  side.start();
  CHECK(side.agent.next()->payload == "launch");
  side.session.send_input(2, "input");
  side.session.send_output_credit(1, Stream::kStderr, 77);
  side.settle();
  const auto credit = side.agent.next(ToAgent::kOutputCredit);
  CHECK(credit.header.process == 1);
  CHECK(credit.header.stream == Stream::kStderr);
  CHECK(decode<Credit>(credit.payload).bytes == 77);
  side.agent.send(ToLauncher::kHello, -1, "hello");
  side.agent.send(ToLauncher::kOutput, 2, "text", Stream::kStdout);
  side.take_events();
  side.settle();
  CHECK(side.take_events() == "frame 1 hello; frame 5 text; batch; ");
}

TEST_CASE("the end of the channel is reported once, with what is known about it", "[unit]") {
  Session side;
  SECTION("it ended") {
    side.start();
    side.take_events();
    side.agent.close();
    side.settle();
    CHECK(side.take_events() == "end: it closed the connection; ");
  }
  SECTION("something else answered") {
    side.start();
    side.take_events();
    side.agent.send_bytes("no route to host\n");
    side.agent.close();
    side.settle();
    CHECK(side.take_events() == "batch; end: it sent: no route to host ; ");
  }
  SECTION("the agent gave up") {
    side.start();
    side.agent.send(ToLauncher::kStarted, 0, "started");
    side.agent.send(ToLauncher::kFailed, -1, "cannot make a pipe:\nToo many open files");
    side.take_events();
    side.settle();
    CHECK(side.take_events() == "frame 3 started; end: it gave up: cannot make a pipe:\\nToo many open files; ");
    side.agent.wait_for_end();
  }
  SECTION("the agent sent a frame of the launcher") {
    side.start();
    side.agent.send_bytes(std::string(kMagic) + std::string("\0\0\0\0\x02\0\0\0\xff\xff\xff\xff\0\0\0\0\0\0\0\0", 20));
    side.take_events();
    side.settle();
    CHECK(side.take_events() == "end: frame of type 2, which only the launcher sends; ");
  }
  SECTION("it could not be opened") {
    side.session.open([] { return refuse("s3:22: connection refused"); });
    side.settle();
    CHECK(side.take_events() == "end: s3:22: connection refused; ");
  }
  side.session.abandon("too late");
  side.clock.advance(std::chrono::hours(1));
  side.settle();
  CHECK(side.take_events().empty());
}

TEST_CASE("an agent that was given up while its channel was being opened gets no frames", "[unit]") {
  Session side;
  side.open();
  side.session.send(ToAgent::kLaunch, -1, "launch");
  side.session.abandon("the job ended first");
  CHECK(side.take_events() == "end: the job ended first; ");
  side.let_open();
  CHECK(side.take_events().empty());
  CHECK_FALSE(side.agent.next());  // the opened channel is closed unused
}

TEST_CASE("bytes that were received while the channel was opened come first", "[unit]") {
  std::string received(kMagic);
  FrameHeader<ToLauncher> hello;
  hello.type = ToLauncher::kHello;
  append_header(received, hello);
  Session side;
  side.open(received);
  CHECK(side.take_events().empty());
  side.let_open();
  CHECK(side.take_events() == "frame 1 ; batch; ");
}

TEST_CASE("over a network, an agent that is silent for too long is lost", "[unit]") {
  Session side;
  side.open();
  side.clock.advance(std::chrono::hours(1));
  side.settle();
  CHECK(side.take_events().empty());  // opening has limits of its own
  side.let_open();
  CHECK(side.agent.next()->header.type == ToAgent::kHeartbeat);
  side.take_events();

  side.clock.advance(Heartbeat::kLongestSilence);
  side.agent.send(ToLauncher::kHeartbeat);
  side.settle();
  CHECK(side.take_events() == "batch; ");  // a heartbeat is no frame for the owner
  side.clock.advance(Heartbeat::kLongestSilence);
  side.settle();
  CHECK(side.take_events().empty());
  side.clock.advance(Heartbeat::kInterval);
  side.settle();
  CHECK(side.take_events() == "end: it has sent nothing for 5 s; ");
  side.agent.wait_for_end();
}

TEST_CASE("a channel on this host has no heartbeat", "[unit]") {
  Session side;
  side.start();
  side.session.pause_heartbeat();
  side.session.resume_heartbeat();
  CHECK(side.clock.pending() == 0);
  side.session.send(ToAgent::kProbeEnd, -1, "");
  side.settle();
  CHECK(side.agent.next()->header.type == ToAgent::kProbeEnd);  // neither a heartbeat nor a pause was sent
}

TEST_CASE("a paused session does not blame the agent, and goes on with a beat", "[unit]") {
  Session side;
  side.open();
  side.let_open();
  side.session.pause_heartbeat();
  bool sent = false;
  side.session.when_sent([&sent] { sent = true; });
  side.settle();
  CHECK(sent);
  CHECK(side.agent.next()->header.type == ToAgent::kHeartbeat);
  CHECK(side.agent.next()->header.type == ToAgent::kPause);
  side.take_events();
  side.clock.advance(std::chrono::hours(1));
  side.settle();
  CHECK(side.take_events().empty());
  side.session.resume_heartbeat();
  side.settle();
  CHECK(side.agent.next()->header.type == ToAgent::kHeartbeat);
  side.clock.advance(Heartbeat::kLongestSilence + Heartbeat::kInterval);
  CHECK(side.take_events() == "end: it has sent nothing for 5 s; ");
}
