#include "launcher/agent/probing/probe_listener.hpp"

#include <array>
#include <chrono>
#include <deque>
#include <fcntl.h>
#include <string_view>
#include <utility>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>

#include "base/log.hpp"
#include "launcher/channel/exception_message.hpp"
#include "launcher/channel/no_throw.hpp"
#include "launcher/channel/strangers.hpp"

namespace runjob {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using namespace std::chrono_literals;

constexpr auto kLifetime = 30s;  // more than the launcher waits for anything

void report(const std::exception_ptr& failure) {
  if (const auto message = exception_message(failure)) log::debug("agent: a probe's listener ended: {}", *message);
}

}  // namespace

class ProbeListener::State : public std::enable_shared_from_this<State> {
 public:
  State(asio::any_io_executor executor, ProbeToken token, std::size_t most_connections)
      : executor_(std::move(executor)), end_(executor_), token_(std::move(token)), connections_(most_connections) {}

  ProbePort listen(const std::string& address);
  void start();
  void stop();

  ProbeListening listening;

 private:
  asio::awaitable<void> accept_all(tcp::acceptor& acceptor);
  asio::awaitable<void> answer(Strangers::Socket socket);

  asio::any_io_executor executor_;
  asio::steady_timer end_;
  const ProbeToken token_;
  std::deque<tcp::acceptor> acceptors_;
  Strangers connections_;
  bool stopped_ = false;
};

ProbePort ProbeListener::State::listen(const std::string& address) {
  error_code error;
  const asio::ip::address ip = asio::ip::make_address(address, error);
  tcp::acceptor acceptor(executor_);
  const tcp::endpoint endpoint(ip, 0);
  if (!error) acceptor.open(endpoint.protocol(), error);
  if (!error) ::fcntl(acceptor.native_handle(), F_SETFD, FD_CLOEXEC);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) return {0, error.value()};
  const int port = acceptor.local_endpoint(error).port();
  acceptors_.push_back(std::move(acceptor));
  return {port, 0};
}

void ProbeListener::State::start() {
  const auto self = shared_from_this();
  for (tcp::acceptor& acceptor : acceptors_) {
    asio::co_spawn(executor_, accept_all(acceptor), [self](const std::exception_ptr& failure) { report(failure); });
  }
  end_.expires_after(kLifetime);
  end_.async_wait([self](error_code error) {
    if (!error) self->stop();
  });
}

void ProbeListener::State::stop() {
  stopped_ = true;
  error_code ignored;
  end_.cancel();
  for (tcp::acceptor& acceptor : acceptors_) acceptor.close(ignored);
  connections_.close_all();
}

asio::awaitable<void> ProbeListener::State::accept_all(tcp::acceptor& acceptor) {
  while (!stopped_) {
    auto [error, accepted] = co_await acceptor.async_accept(kNoThrow);
    if (stopped_) co_return;
    if (error == asio::error::connection_aborted) continue;  // it hung up while it waited
    if (error) co_return;                                    // out of descriptors: this address counts as not reached
    const Strangers::Socket socket = connections_.add(std::move(accepted));
    const auto self = shared_from_this();
    asio::co_spawn(executor_, answer(socket), [self, socket](const std::exception_ptr& failure) {
      report(failure);
      self->connections_.remove(socket);
    });
  }
}

asio::awaitable<void> ProbeListener::State::answer(Strangers::Socket socket) {
  std::array<char, ProbeToken::kBytes> received{};
  const asio::mutable_buffer room = asio::buffer(received);
  const auto [error, bytes] = co_await asio::async_read(*socket, room, kNoThrow);
  if (error || std::string_view(received.data(), bytes) != token_.question) co_return;
  const asio::const_buffer answer = asio::buffer(token_.answer);
  const auto [write_error, written] = co_await asio::async_write(*socket, answer, kNoThrow);
  static_cast<void>(write_error);
  static_cast<void>(written);
}

ProbeListener::ProbeListener(asio::any_io_executor executor, const ProbeListen& message, std::size_t most_connections)
    : state_(std::make_shared<State>(std::move(executor), message.token, most_connections)) {
  for (const std::string& address : message.addresses) {
    state_->listening.ports.push_back(state_->listen(address));
  }
  state_->start();
}

ProbeListener::~ProbeListener() {
  state_->stop();
}

const ProbeListening& ProbeListener::listening() const {
  return state_->listening;
}

}  // namespace runjob
