#include "launcher/channel/bounded_listener.hpp"

#include <cstring>
#include <fcntl.h>
#include <list>
#include <sys/socket.h>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/steady_timer.hpp>
#include <fmt/format.h>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/screen_text.hpp"
#include "launcher/channel/no_throw.hpp"
#include "launcher/channel/with_timeout.hpp"

namespace runjob {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using namespace std::chrono_literals;

constexpr int kMostReports = 10;

/// Only for an endpoint of TCP.
tcp::endpoint tcp_endpoint(const StreamProtocol::endpoint& endpoint) {
  tcp::endpoint copy;
  copy.resize(endpoint.size());
  std::memcpy(copy.data(), endpoint.data(), endpoint.size());
  return copy;
}

std::string peer_text(const StreamSocket& socket) {
  error_code error;
  const StreamProtocol::endpoint peer = socket.remote_endpoint(error);
  if (error) return "an unknown address";  // the other side has left
  const std::string address = ip_address_text(peer);
  return address.empty() ? "a process on this host" : fmt::format("{} port {}", address, tcp_endpoint(peer).port());
}

}  // namespace

StreamAcceptor listen_at(asio::any_io_executor executor, const StreamProtocol::endpoint& endpoint, error_code& error) {
  StreamAcceptor acceptor(std::move(executor));
  acceptor.open(endpoint.protocol(), error);
  if (error) return acceptor;
  ::fcntl(acceptor.native_handle(), F_SETFD, FD_CLOEXEC);
  if (endpoint.protocol().family() == AF_INET6 && tcp_endpoint(endpoint).address().is_unspecified())
    acceptor.set_option(asio::ip::v6_only(false), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  return acceptor;
}

StreamAcceptor listen_everywhere(asio::any_io_executor executor, int port, error_code& error) {
  StreamAcceptor acceptor = listen_at(executor, tcp::endpoint(tcp::v6(), static_cast<unsigned short>(port)), error);
  if (!error) return acceptor;
  return listen_at(executor, tcp::endpoint(tcp::v4(), static_cast<unsigned short>(port)), error);
}

int port_of(const StreamAcceptor& acceptor) {
  return tcp_endpoint(acceptor.local_endpoint()).port();
}

std::string ip_address_text(const StreamProtocol::endpoint& endpoint) {
  const int family = endpoint.protocol().family();
  if (family != AF_INET && family != AF_INET6) return "";
  const asio::ip::address address = tcp_endpoint(endpoint).address();
  if (address.is_v6() && address.to_v6().is_v4_mapped())
    return asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6()).to_string();
  return address.to_string();
}

class BoundedListener::State : public std::enable_shared_from_this<State> {
 public:
  State(asio::any_io_executor executor, Bounds bounds, Serve serve)
      : executor_(std::move(executor)), bounds_(bounds), serve_(std::move(serve)) {}

  void accept_from(StreamAcceptor acceptor);
  void stop();

 private:
  struct Entry {
    StreamAcceptor acceptor;
    asio::steady_timer retry;
  };
  struct Stranger {
    std::string peer;
    asio::steady_timer limit;
    bool is_dropped = false;
  };

  asio::awaitable<void> accept_all(Entry& entry);
  void meet(StreamSocket socket);
  asio::awaitable<void> serve(StreamSocket socket, std::shared_ptr<Stranger> stranger);
  void drop_oldest();
  void report_refusal(const std::string& peer, const std::exception_ptr& failure);

  asio::any_io_executor executor_;
  const Bounds bounds_;
  const Serve serve_;
  std::list<Entry> entries_;
  std::list<std::shared_ptr<Stranger>> strangers_;  // oldest first; each is shared with its coroutine
  int refusals_ = 0;
  bool was_accepting_refused_ = false;
  bool stopped_ = false;
};

void BoundedListener::State::accept_from(StreamAcceptor acceptor) {
  Entry& entry = entries_.emplace_back(Entry{std::move(acceptor), asio::steady_timer(executor_)});
  const auto self = shared_from_this();
  asio::co_spawn(executor_, accept_all(entry), [self](const std::exception_ptr&) {});
}

void BoundedListener::State::stop() {
  stopped_ = true;
  error_code ignored;
  for (Entry& entry : entries_) {
    entry.acceptor.close(ignored);
    entry.retry.cancel();
  }
  while (!strangers_.empty()) drop_oldest();
}

asio::awaitable<void> BoundedListener::State::accept_all(Entry& entry) {
  while (!stopped_) {
    auto [error, socket] = co_await entry.acceptor.async_accept(kNoThrow);
    if (stopped_) co_return;
    if (error == asio::error::connection_aborted) continue;  // it hung up while it waited
    if (!error) {
      meet(std::move(socket));
      continue;
    }
    if (!std::exchange(was_accepting_refused_, true))  // such as too many open files
      log::warn("cannot accept a connection: {}; it waits until it can be accepted", error.message());
    entry.retry.expires_after(100ms);
    co_await entry.retry.async_wait(kNoThrow);
  }
}

void BoundedListener::State::meet(StreamSocket socket) {
  ::fcntl(socket.native_handle(), F_SETFD, FD_CLOEXEC);
  if (strangers_.size() >= bounds_.connections) drop_oldest();
  const std::shared_ptr<Stranger> stranger = strangers_.emplace_back(
      std::make_shared<Stranger>(Stranger{peer_text(socket), asio::steady_timer(executor_, bounds_.served)}));
  const auto self = shared_from_this();
  const auto on_end = [self, stranger](const std::exception_ptr& failure) {
    if (failure && !stranger->is_dropped) self->report_refusal(stranger->peer, failure);
    self->strangers_.remove(stranger);
  };
  asio::co_spawn(executor_, serve(std::move(socket), stranger), on_end);
}

asio::awaitable<void> BoundedListener::State::serve(StreamSocket socket, std::shared_ptr<Stranger> stranger) {
  auto served = serve_(std::move(socket), stranger->peer);
  const bool is_in_time = co_await with_timeout(stranger->limit, std::move(served));
  if (is_in_time) co_return;
  throw Error(Errc::kTimeout, fmt::format("it has not shown within {:g} s that it belongs to the job",
                                          std::chrono::duration<double>(bounds_.served).count()));
}

void BoundedListener::State::drop_oldest() {
  const std::shared_ptr<Stranger> oldest = strangers_.front();
  strangers_.pop_front();
  oldest->is_dropped = true;
  oldest->limit.expires_at(asio::steady_timer::time_point::min());
}

void BoundedListener::State::report_refusal(const std::string& peer, const std::exception_ptr& failure) {
  std::string why;
  try {
    std::rethrow_exception(failure);
  } catch (const Error& error) {
    if (error.code() == Errc::kConnect) return;
    why = error.what();
  } catch (const std::exception& error) {
    why = error.what();
  }
  if (++refusals_ <= kMostReports) log::warn("refused a connection from {}: {}", peer, one_line(why));
  if (refusals_ == kMostReports) log::warn("further refusals are not reported");
}

BoundedListener::BoundedListener(asio::any_io_executor executor, Bounds bounds, Serve serve)
    : state_(std::make_shared<State>(std::move(executor), bounds, std::move(serve))) {}

BoundedListener::~BoundedListener() {
  state_->stop();
}

void BoundedListener::accept_from(StreamAcceptor acceptor) {
  state_->accept_from(std::move(acceptor));
}

void BoundedListener::stop() {
  state_->stop();
}

}  // namespace runjob
