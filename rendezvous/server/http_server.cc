#include "rendezvous/server/http_server.hpp"

#include <algorithm>
#include <exception>
#include <list>
#include <unistd.h>
#include <utility>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/steady_timer.hpp>
#include <fmt/format.h>

#include "base/log.hpp"
#include "rendezvous/http_message.hpp"
#include "rendezvous/no_throw.hpp"
#include "rendezvous/server/gatekeeper.hpp"
#include "rendezvous/server/http_listener.hpp"
#include "rendezvous/server/http_session.hpp"

namespace runjob::rendezvous {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

/// Refuses a connection before anything was read from it. The empty buffer of the socket has room for the whole answer.
void turn_away(StreamSocket socket, int status, const std::string& why) {
  const Response response = error_response(status, why);
  const std::string text = response_head(response, {}, 11, false) + response.body.str();
  error_code ignored;
  socket.non_blocking(true, ignored);
  socket.write_some(asio::buffer(text), ignored);
}

void log_failure(const char* what, const std::exception_ptr& failure) {
  if (!failure) return;
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& error) {
    log::error("rendezvous: {} ended: {}", what, error.what());
  }
}

}  // namespace

class HttpServer::State : public std::enable_shared_from_this<State> {
 public:
  State(Listener listener, std::string path, Handler handler, Limits limits, std::optional<JobKey> key)
      : listener_(std::move(listener)),
        retry_(listener_.get_executor()),
        path_(std::move(path)),
        handler_(std::move(handler)),
        limits_(limits),
        key_(std::move(key)),
        port_(port_of(listener_)) {}

  void start();
  void stop();
  int port() const { return port_; }

 private:
  asio::awaitable<void> accept_all();
  void admit(StreamSocket socket);
  bool make_room();
  void on_refusal(const std::string& peer, const std::string& why);

  Listener listener_;
  asio::steady_timer retry_;
  const std::string path_;  // of the Unix socket, "" for TCP
  const Handler handler_;
  const Limits limits_;
  const std::optional<JobKey> key_;
  const int port_;
  std::list<std::shared_ptr<HttpSession>> sessions_;  // oldest first; the other owner is its coroutine
  int refusals_ = 0;
  bool stopped_ = false;
};

void HttpServer::State::start() {
  const auto self = shared_from_this();
  asio::co_spawn(listener_.get_executor(), accept_all(),
                 [self](std::exception_ptr failure) { log_failure("the listener", failure); });
}

void HttpServer::State::stop() {
  stopped_ = true;
  error_code ignored;
  listener_.close(ignored);
  retry_.cancel();
  for (const auto& session : sessions_) session->close();
  if (!path_.empty()) ::unlink(path_.c_str());
}

asio::awaitable<void> HttpServer::State::accept_all() {
  while (!stopped_) {
    auto [error, socket] = co_await listener_.async_accept(kNoThrow);
    if (stopped_) co_return;
    if (!error) {
      admit(std::move(socket));
      continue;
    }
    // No descriptors or no memory are left. The connection stays in the backlog until there are some again.
    log::warn("rendezvous: accept on {}: {}", path_.empty() ? fmt::format("port {}", port_) : path_, error.message());
    retry_.expires_after(std::chrono::milliseconds(100));
    co_await retry_.async_wait(kNoThrow);
  }
}

void HttpServer::State::admit(StreamSocket socket) {
  prepare_accepted(socket.native_handle());
  const bool trusted = is_own_users(socket.native_handle());
  if (!trusted && !key_)
    return turn_away(std::move(socket), 403, fmt::format("only processes of user {} are admitted", ::geteuid()));
  if (sessions_.size() >= limits_.connections && !make_room())
    return turn_away(std::move(socket), 503,
                     fmt::format("the limit of {} connections is reached", limits_.connections));
  const auto self = shared_from_this();
  const std::string peer = peer_name(socket.native_handle());
  const auto session =
      std::make_shared<HttpSession>(std::move(socket), Gatekeeper(trusted, key_), handler_, limits_.message_timeout,
                                    [weak = weak_from_this(), peer](const std::string& why) {
                                      if (const auto state = weak.lock()) state->on_refusal(peer, why);
                                    });
  const auto place = sessions_.insert(sessions_.end(), session);
  asio::co_spawn(listener_.get_executor(), session->run(), [self, session, place](std::exception_ptr failure) {
    log_failure("a connection", failure);
    self->sessions_.erase(place);
  });
}

/// Closes the oldest connection that has not proved to hold the key. Ranks prove it within a round trip, so that none
/// of them is closed.
bool HttpServer::State::make_room() {
  const auto stranger = std::find_if(sessions_.begin(), sessions_.end(), [](const auto& session) {
    return session->is_stranger() && !session->is_closed();
  });
  if (stranger == sessions_.end()) return false;
  (*stranger)->close();
  return true;
}

void HttpServer::State::on_refusal(const std::string& peer, const std::string& why) {
  constexpr int kReported = 10;  // a scanner must not fill the log
  if (++refusals_ <= kReported) log::warn("rendezvous: refused a request of {}: {}", peer, why);
  if (refusals_ == kReported) log::warn("rendezvous: further refusals are not reported");
}

HttpServer::HttpServer(asio::any_io_executor executor, const std::string& path, Handler handler, Limits limits,
                       std::optional<JobKey> key)
    : state_(std::make_shared<State>(listen_on_path(std::move(executor), path), path, std::move(handler), limits,
                                     std::move(key))) {
  state_->start();
}

HttpServer::HttpServer(asio::any_io_executor executor, const std::string& path, Handler handler)
    : HttpServer(std::move(executor), path, std::move(handler), Limits()) {}

HttpServer::HttpServer(asio::any_io_executor executor, const TcpAddress& address, JobKey key, Handler handler,
                       Limits limits)
    : state_(std::make_shared<State>(listen_on_address(std::move(executor), address.address, address.port), "",
                                     std::move(handler), limits, std::move(key))) {
  state_->start();
}

int HttpServer::port() const {
  return state_->port();
}

HttpServer::~HttpServer() {
  state_->stop();
}

}  // namespace runjob::rendezvous
