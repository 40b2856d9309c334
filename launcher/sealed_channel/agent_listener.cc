#include "launcher/sealed_channel/agent_listener.hpp"

#include <chrono>
#include <fcntl.h>
#include <list>
#include <optional>
#include <unistd.h>
#include <utility>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/steady_timer.hpp>
#include <fmt/format.h>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/unique_handle.hpp"
#include "launcher/channel/fd_channel.hpp"
#include "launcher/channel/no_throw.hpp"
#include "launcher/channel/with_timeout.hpp"
#include "launcher/sealed_channel/agent_call.hpp"

namespace runjob {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using namespace std::chrono_literals;

constexpr auto kProofLimit = 10s;

tcp::acceptor listen_everywhere(asio::any_io_executor executor) {
  for (const tcp protocol : {tcp::v6(), tcp::v4()}) {
    tcp::acceptor acceptor(executor);
    error_code error;
    acceptor.open(protocol, error);
    if (!error) ::fcntl(acceptor.native_handle(), F_SETFD, FD_CLOEXEC);
    if (!error && protocol == tcp::v6()) acceptor.set_option(asio::ip::v6_only(false), error);
    if (!error) acceptor.bind({protocol, 0}, error);
    if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
    if (!error) return acceptor;
    if (protocol == tcp::v4()) throw system_error("listen for agents", error.value());
  }
  throw Error(Errc::kBug, "no protocol to listen with");
}

/// A connection whose other end has not proved that it has the key.
struct Stranger {
  std::unique_ptr<Channel> channel;
  std::string peer;
  std::string received;  // not taken yet

  void hang_up() const {
    if (channel) channel->close();
  }
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

}  // namespace

class AgentListener::State : public std::enable_shared_from_this<State> {
 public:
  State(asio::any_io_executor executor, const rendezvous::JobKey& key, std::size_t strangers, OnAgent on_agent)
      : acceptor_(listen_everywhere(executor)),
        retry_(executor),
        key_(key),
        most_strangers_(strangers),
        on_agent_(std::move(on_agent)) {}

  void start();
  void stop();
  int port() const { return acceptor_.local_endpoint().port(); }

 private:
  using Place = std::list<Stranger>::iterator;

  asio::awaitable<void> accept_all();
  void meet(tcp::socket socket);
  asio::awaitable<void> admit(Place stranger);
  asio::awaitable<std::string> shake_hands(Stranger& stranger);
  void refuse(const std::string& peer, const std::string& why);

  tcp::acceptor acceptor_;
  asio::steady_timer retry_;
  const rendezvous::JobKey key_;
  const std::size_t most_strangers_;
  const OnAgent on_agent_;
  std::list<Stranger> strangers_;  // oldest first
  int refusals_ = 0;
  bool stopped_ = false;
};

void AgentListener::State::start() {
  const auto self = shared_from_this();
  asio::co_spawn(acceptor_.get_executor(), accept_all(), [self](const std::exception_ptr&) {});
}

void AgentListener::State::stop() {
  stopped_ = true;
  error_code ignored;
  acceptor_.close(ignored);
  retry_.cancel();
  for (const Stranger& stranger : strangers_) stranger.hang_up();
}

asio::awaitable<void> AgentListener::State::accept_all() {
  while (!stopped_) {
    auto [error, socket] = co_await acceptor_.async_accept(kNoThrow);
    if (stopped_) co_return;
    if (!error) {
      meet(std::move(socket));
      continue;
    }
    log::warn("accepting agents: {}", error.message());  // out of descriptors: it waits in the backlog
    retry_.expires_after(100ms);
    co_await retry_.async_wait(kNoThrow);
  }
}

void AgentListener::State::meet(tcp::socket socket) {
  error_code ignored;
  const tcp::endpoint peer = socket.remote_endpoint(ignored);
  socket.set_option(tcp::no_delay(true), ignored);
  UniqueFd output(socket.release(ignored));
  UniqueFd input(::fcntl(output.get(), F_DUPFD_CLOEXEC, 3));
  if (!input) return;
  ::fcntl(output.get(), F_SETFD, FD_CLOEXEC);
  if (strangers_.size() >= most_strangers_) strangers_.front().hang_up();
  const Place place = strangers_.insert(strangers_.end(), Stranger());
  place->channel = std::make_unique<FdChannel>(acceptor_.get_executor(), std::move(input), std::move(output));
  place->peer = fmt::format("{} port {}", peer.address().to_string(ignored), peer.port());
  const auto self = shared_from_this();
  asio::co_spawn(acceptor_.get_executor(), admit(place), [self, place](const std::exception_ptr& failure) {
    const std::string from = place->peer;
    self->strangers_.erase(place);
    try {
      if (failure) std::rethrow_exception(failure);
    } catch (const Error& error) {
      const bool went_away = error.code() == Errc::kConnect;  // an agent that reached us by another address too
      if (!self->stopped_ && !went_away) self->refuse(from, error.what());
    } catch (const std::exception& error) {
      self->refuse(from, error.what());
    }
  });
}

asio::awaitable<void> AgentListener::State::admit(Place stranger) {
  auto handshake = shake_hands(*stranger);
  std::optional<std::string> node = co_await with_timeout(acceptor_.get_executor(), std::move(handshake), kProofLimit);
  if (!node) throw Error(Errc::kTimeout, "it has not shown in time that it holds the job's key");
  if (!stopped_) on_agent_(std::move(*node), stranger->peer, std::move(stranger->channel));
}

/// The name of the agent's node. The stranger's channel is the sealed one then.
asio::awaitable<std::string> AgentListener::State::shake_hands(Stranger& stranger) {
  const std::string magic = co_await take(stranger, kCallMagic.size());
  if (magic != kCallMagic) throw Error(Errc::kProtocol, "it is no agent");
  const std::string length_bytes = co_await take(stranger, 2);
  const std::size_t length = (static_cast<std::size_t>(static_cast<unsigned char>(length_bytes[0])) << 8) |
                             static_cast<unsigned char>(length_bytes[1]);
  if (length > NoiseHandshake::kOverheadBytes + kMaxNodeNameBytes) throw Error(Errc::kProtocol, "it is no agent");
  const std::string message = co_await take(stranger, length);
  NoiseHandshake handshake(NoiseHandshake::Role::kResponder, key_, kCallPrologue);
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

void AgentListener::State::refuse(const std::string& peer, const std::string& why) {
  constexpr int kReported = 10;  // a scanner must not fill the log
  if (++refusals_ <= kReported) log::warn("refused a connection from {}: {}", peer, why);
  if (refusals_ == kReported) log::warn("further refusals are not reported");
}

AgentListener::AgentListener(asio::any_io_executor executor, const rendezvous::JobKey& key, std::size_t strangers,
                             OnAgent on_agent)
    : state_(std::make_shared<State>(std::move(executor), key, strangers, std::move(on_agent))) {
  state_->start();
}

AgentListener::~AgentListener() {
  state_->stop();
}

int AgentListener::port() const {
  return state_->port();
}

}  // namespace runjob
