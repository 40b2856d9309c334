#include "launcher/sealed_channel/agent_listener.hpp"

#include <future>
#include <map>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_future.hpp>

#include "base/log.hpp"
#include "launcher/sealed_channel/agent_call.hpp"
#include "tests/catch.hpp"
#include "tests/rendezvous/eventually.hpp"
#include "tests/rendezvous/raw_socket.hpp"

using namespace runjob;
using rendezvous::eventually;
using rendezvous::JobKey;
using rendezvous::RawSocket;

namespace {

namespace asio = boost::asio;

const bool kQuiet = (log::configure(log::Level::kError, ""), true);  // each refusal is logged

/// A listener on a thread of its own, and the agents that it has let in.
class Listening {
 public:
  explicit Listening(std::size_t strangers = 8) {
    on_thread([this, strangers] {
      listener_ = std::make_unique<AgentListener>(
          context_.get_executor(), key, strangers,
          [this](const std::string& node, const std::string& peer, std::unique_ptr<Channel> channel) {
            agents_[node] = std::move(channel);
            peers_[node] = peer;
          });
      return 0;
    });
  }
  ~Listening() {
    on_thread([this] {
      listener_.reset();
      agents_.clear();
      return 0;
    });
    work_.reset();
    thread_.join();
  }

  int port() {
    return on_thread([this] { return listener_->port(); });
  }
  std::vector<std::string> nodes() {
    return on_thread([this] {
      std::vector<std::string> names;
      for (const auto& [node, channel] : agents_) names.push_back(node);
      return names;
    });
  }
  std::string peer_of(const std::string& node) {
    return on_thread([&] { return peers_.at(node); });
  }
  /// What an agent sends, up to `count` bytes.
  std::string read(const std::string& node, std::size_t count) {
    std::string text(count, '\0');
    Channel* channel = on_thread([&] { return agents_.at(node).get(); });
    auto bytes = asio::co_spawn(context_, channel->read_some(asio::buffer(text)), asio::use_future);
    text.resize(bytes.get());
    return text;
  }

  const JobKey key = JobKey::random();

 private:
  template <class Call>
  std::invoke_result_t<Call> on_thread(Call call) {
    std::packaged_task<std::invoke_result_t<Call>()> task(call);
    auto result = task.get_future();
    asio::post(context_, [&task] { task(); });
    return result.get();
  }

  asio::io_context context_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_ = asio::make_work_guard(context_);
  std::unique_ptr<AgentListener> listener_;
  std::map<std::string, std::unique_ptr<Channel>> agents_;
  std::map<std::string, std::string> peers_;
  std::thread thread_{[this] { context_.run(); }};
};

std::string with_length(const std::string& message) {
  return std::string{static_cast<char>(message.size() >> 8), static_cast<char>(message.size() & 0xff)} + message;
}

/// The agent's side of the handshake up to its first sealed bytes, which are `text`.
void be_agent(RawSocket& socket, const JobKey& key, const std::string& node, const std::string& text) {
  NoiseHandshake handshake(NoiseHandshake::Role::kInitiator, key, kCallPrologue);
  CHECK(socket.send(std::string(kCallMagic) + with_length(handshake.write(node))));
  const std::string answer = socket.read_bytes(2 + NoiseHandshake::kOverheadBytes);
  REQUIRE(answer.size() == 2 + NoiseHandshake::kOverheadBytes);
  REQUIRE(handshake.read(answer.substr(2)));
  std::string sealed;
  Sealer(handshake.finish().sending).seal(text, sealed);
  CHECK(socket.send(sealed));
}

}  // namespace

TEST_CASE("an agent that holds the key is let in under its node's name", "[net]") {
  Listening listening;
  RawSocket one = RawSocket::connect_to(listening.port());
  RawSocket other = RawSocket::connect_to(listening.port());
  be_agent(one, listening.key, "s1", "hello of one");
  be_agent(other, listening.key, "s2", "hello of other");
  CHECK(eventually([&] { return listening.nodes() == std::vector<std::string>{"s1", "s2"}; }));
  CHECK(listening.read("s2", 100) == "hello of other");
  CHECK(listening.read("s1", 100) == "hello of one");
  CHECK_THAT(listening.peer_of("s1"), ContainsSubstring("127.0.0.1 port "));
}

TEST_CASE("a whole handshake that was recorded lets nobody in", "[net]") {
  Listening listening;
  RawSocket agent = RawSocket::connect_to(listening.port());
  NoiseHandshake handshake(NoiseHandshake::Role::kInitiator, listening.key, kCallPrologue);
  const std::string first = std::string(kCallMagic) + with_length(handshake.write("s1"));
  CHECK(agent.send(first));
  REQUIRE(handshake.read(agent.read_bytes(50).substr(2)));
  std::string sealed;
  Sealer(handshake.finish().sending).seal("hello", sealed);
  RawSocket recorder = RawSocket::connect_to(listening.port());
  CHECK(recorder.send(first + sealed));
  CHECK(recorder.read_to_end().size() == 50);  // the answer of the handshake, then the end
  CHECK(listening.nodes().empty());
  CHECK(agent.send(sealed));
  CHECK(eventually([&] { return listening.nodes() == std::vector<std::string>{"s1"}; }));
}

TEST_CASE("others are turned away without a word", "[net]") {
  Listening listening;
  NoiseHandshake stranger(NoiseHandshake::Role::kInitiator, JobKey::random(), kCallPrologue);
  const std::string magic(kCallMagic);
  for (const std::string& bytes :
       {std::string("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), std::string("SSH-2.0-OpenSSH_9.2\r\n"),
        std::string(1000, '\0'), magic + with_length(stranger.write("s1")), magic + "\xff\xff" + std::string(100, 'x'),
        magic + std::string("\0\0", 2), magic + with_length(std::string(47, 'x'))}) {
    RawSocket socket = RawSocket::connect_to(listening.port());
    socket.send(bytes);
    CHECK(socket.read_to_end() == "");
  }
  CHECK(listening.nodes().empty());
}

TEST_CASE("a flood of strangers does not keep agents out", "[net]") {
  Listening listening(4);
  std::vector<RawSocket> flood;
  for (int i = 0; i < 50; ++i) flood.push_back(RawSocket::connect_to(listening.port()));
  RawSocket agent = RawSocket::connect_to(listening.port());
  be_agent(agent, listening.key, "s1", "hello");
  CHECK(eventually([&] { return listening.nodes().size() == 1; }));
  CHECK(flood.front().read_to_end() == "");
}
