#include "launcher/sealed_channel/agent_listener.hpp"

#include <cerrno>
#include <chrono>
#include <fcntl.h>
#include <optional>
#include <utility>

#include <boost/asio/ip/tcp.hpp>

#include "base/error.hpp"
#include "base/unique_handle.hpp"
#include "launcher/channel/fd_channel.hpp"
#include "launcher/sealed_channel/agent_call.hpp"

namespace runjob {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using namespace std::chrono_literals;

constexpr auto kProofLimit = 10s;

/// A connection whose other end has not proved that it has the key.
struct Stranger {
  std::unique_ptr<Channel> channel;
  std::string received;  // not taken yet
};

/// Reads until `count` bytes are there and takes them.
asio::awaitable<std::string> take(Stranger& stranger, std::size_t count) {
  char block[512];
  while (stranger.received.size() < count) {
    const std::size_t bytes = co_await stranger.channel->read_some(asio::buffer(block));
    if (bytes == 0) throw Error(Errc::kConnect, "it hung up");
    stranger.received.append(block, bytes);
  }
  std::string taken = stranger.received.substr(0, count);
  stranger.received.erase(0, count);
  co_return taken;
}

std::string with_length(const std::string& message) {
  std::string text;
  text += static_cast<char>(message.size() >> 8);
  text += static_cast<char>(message.size() & 0xff);
  return text + message;
}

std::unique_ptr<Channel> to_channel(StreamSocket socket) {
  error_code ignored;
  socket.set_option(asio::ip::tcp::no_delay(true), ignored);
  const asio::any_io_executor executor = socket.get_executor();
  UniqueFd output(socket.release(ignored));
  UniqueFd input(::fcntl(output.get(), F_DUPFD_CLOEXEC, 3));
  if (!input) throw system_error("duplicate the descriptor of an agent's connection", errno);
  return std::make_unique<FdChannel>(executor, std::move(input), std::move(output));
}

/// The name of the agent's node. The stranger's channel is the sealed one then.
asio::awaitable<std::string> shake_hands(Stranger& stranger, const rendezvous::JobKey& key) {
  const std::string magic = co_await take(stranger, kCallMagic.size());
  if (magic != kCallMagic) throw Error(Errc::kProtocol, "it is no agent");
  const std::string length_bytes = co_await take(stranger, 2);
  const std::size_t length = (static_cast<std::size_t>(static_cast<unsigned char>(length_bytes[0])) << 8) |
                             static_cast<unsigned char>(length_bytes[1]);
  if (length > NoiseHandshake::kOverheadBytes + kMaxNodeNameBytes) throw Error(Errc::kProtocol, "it is no agent");
  const std::string message = co_await take(stranger, length);
  NoiseHandshake handshake(NoiseHandshake::Role::kResponder, key, kCallPrologue);
  std::optional<std::string> node = handshake.read(message);
  if (!node) throw Error(Errc::kAuth, "it does not hold the job's key");
  const std::string answer = with_length(handshake.write(""));
  std::vector<asio::const_buffer> buffers{asio::buffer(answer)};
  co_await stranger.channel->write(std::move(buffers));
  auto sealed = std::make_unique<SealedChannel>(std::move(stranger.channel), handshake.finish(),
                                                std::exchange(stranger.received, {}));
  SealedChannel& channel = *sealed;
  stranger.channel = std::move(sealed);
  co_await channel.confirm();
  co_return std::move(*node);
}

}  // namespace

struct AgentListener::State {
  const rendezvous::JobKey key;
  const OnAgent on_agent;
  bool stopped = false;

  static asio::awaitable<void> admit(std::shared_ptr<const State> state, StreamSocket socket, std::string peer);
};

asio::awaitable<void> AgentListener::State::admit(std::shared_ptr<const State> state, StreamSocket socket,
                                                  std::string peer) {
  Stranger stranger{to_channel(std::move(socket)), ""};
  std::string node = co_await shake_hands(stranger, state->key);
  if (!state->stopped) state->on_agent(std::move(node), std::move(peer), std::move(stranger.channel));
}

AgentListener::AgentListener(asio::any_io_executor executor, const rendezvous::JobKey& key, std::size_t strangers,
                             OnAgent on_agent)
    : state_(std::make_shared<State>(State{key, std::move(on_agent)})),
      listener_(executor, {strangers, kProofLimit}, [state = state_](StreamSocket socket, std::string peer) {
        return State::admit(state, std::move(socket), std::move(peer));
      }) {
  error_code error;
  StreamAcceptor acceptor = listen_everywhere(executor, 0, error);
  if (error) throw system_error("listen for agents", error.value());
  port_ = port_of(acceptor);
  listener_.accept_from(std::move(acceptor));
}

AgentListener::~AgentListener() {
  state_->stopped = true;
}

}  // namespace runjob
