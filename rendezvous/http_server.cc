#include "rendezvous/http_server.hpp"

#include <exception>
#include <fcntl.h>
#include <set>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>

#include "base/error.hpp"
#include "base/log.hpp"
#include "rendezvous/http_session.hpp"

namespace runjob::rendezvous {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using Local = asio::local::stream_protocol;

constexpr auto kNoThrow = asio::as_tuple(asio::use_awaitable);

/// Refuses a connection before anything was read from it. An empty socket's buffer takes so few bytes at
/// once.
void turn_away(Local::socket socket, int status, const std::string& why) {
  const Response response = error_response(status, why);
  const std::string text =
      fmt::format("HTTP/1.1 {} Refused\r\nConnection: close\r\nContent-Type: {}\r\nContent-Length: {}\r\n\r\n{}",
                  status, response.content_type, response.body.size(), response.body.str());
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
  State(asio::any_io_executor executor, std::string path, Handler handler, Limits limits)
      : acceptor_(executor), retry_(executor), path_(std::move(path)), handler_(std::move(handler)), limits_(limits) {}

  void listen();
  void start();
  void stop();

 private:
  asio::awaitable<void> accept_all();
  void admit(Local::socket socket);

  asio::basic_socket_acceptor<Local> acceptor_;
  asio::steady_timer retry_;
  const std::string path_;
  const Handler handler_;
  const Limits limits_;
  std::set<std::shared_ptr<HttpSession>> sessions_;  // the other owner is the session's coroutine
  bool stopped_ = false;
};

void HttpServer::State::listen() {
  if (path_.size() >= sizeof(sockaddr_un::sun_path))
    throw system_error(fmt::format("listen on {}", path_), ENAMETOOLONG);
  error_code error;
  acceptor_.open(Local(), error);
  if (!error) ::fcntl(acceptor_.native_handle(), F_SETFD, FD_CLOEXEC);
  if (!error) acceptor_.bind(Local::endpoint(path_), error);
  // Before listen(), so that nobody else connects first; its directory's mode guards it too.
  if (!error && ::chmod(path_.c_str(), 0600) != 0) error = error_code(errno, boost::system::system_category());
  if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
  if (error) throw system_error(fmt::format("listen on {}", path_), error.value());
}

void HttpServer::State::start() {
  const auto self = shared_from_this();
  asio::co_spawn(acceptor_.get_executor(), accept_all(),
                 [self](std::exception_ptr failure) { log_failure("the listener", failure); });
}

void HttpServer::State::stop() {
  stopped_ = true;
  error_code ignored;
  acceptor_.close(ignored);
  retry_.cancel();
  for (const auto& session : sessions_) session->close();
  ::unlink(path_.c_str());
}

asio::awaitable<void> HttpServer::State::accept_all() {
  while (!stopped_) {
    auto [error, socket] = co_await acceptor_.async_accept(kNoThrow);
    if (stopped_) co_return;
    if (!error) {
      admit(std::move(socket));
      continue;
    }
    // Out of descriptors or memory: the connection stays in the backlog until some are free again.
    log::warn("rendezvous: accept on {}: {}", path_, error.message());
    retry_.expires_after(std::chrono::milliseconds(100));
    co_await retry_.async_wait(kNoThrow);
  }
}

void HttpServer::State::admit(Local::socket socket) {
  ::fcntl(socket.native_handle(), F_SETFD, FD_CLOEXEC);
  ucred peer{};
  socklen_t length = sizeof peer;
  if (::getsockopt(socket.native_handle(), SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0 || peer.uid != ::geteuid())
    return turn_away(std::move(socket), 403, fmt::format("only processes of user {} are admitted", ::geteuid()));
  if (sessions_.size() >= limits_.connections)
    return turn_away(std::move(socket), 503,
                     fmt::format("the limit of {} connections is reached", limits_.connections));
  const auto session =
      std::make_shared<HttpSession>(HttpSession::Socket(std::move(socket)), handler_, limits_.message_timeout);
  sessions_.insert(session);
  const auto self = shared_from_this();
  asio::co_spawn(acceptor_.get_executor(), session->run(), [self, session](std::exception_ptr failure) {
    log_failure("a connection", failure);
    self->sessions_.erase(session);
  });
}

HttpServer::HttpServer(asio::any_io_executor executor, const std::string& path, Handler handler, Limits limits)
    : state_(std::make_shared<State>(std::move(executor), path, std::move(handler), limits)) {
  state_->listen();
  state_->start();
}

HttpServer::HttpServer(asio::any_io_executor executor, const std::string& path, Handler handler)
    : HttpServer(std::move(executor), path, std::move(handler), Limits()) {}

HttpServer::~HttpServer() {
  state_->stop();
}

}  // namespace runjob::rendezvous
