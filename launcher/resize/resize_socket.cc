#include "launcher/resize/resize_socket.hpp"

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/write.hpp>
#include <fmt/format.h>

#include "base/error.hpp"
#include "base/log.hpp"
#include "launcher/channel/no_throw.hpp"
#include "launcher/resize/resize_request.hpp"

namespace runjob {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

using namespace std::chrono_literals;

constexpr std::size_t kLongestRequest = 64 * 1024;
constexpr std::size_t kMostCallers = 64;
constexpr auto kRequestLimit = 10s;

bool is_of_this_user(StreamSocket& socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return ::getsockopt(socket.native_handle(), SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == ::getuid();
}

}  // namespace

ResizeSocket::ResizeSocket(asio::any_io_executor executor, std::string folder, std::string job_id, HostChanges& changes)
    : executor_(std::move(executor)), folder_(std::move(folder)), job_id_(std::move(job_id)), changes_(changes) {}

void ResizeSocket::start() {
  try {
    make_resize_folder(folder_);
    remove_old_sockets();
    const std::string path = folder_ + "/" + resize_socket_name({job_id_, ::getpid()});
    const mode_t before = ::umask(0177);
    error_code error;
    StreamAcceptor acceptor = listen_at(executor_, asio::local::stream_protocol::endpoint(path), error);
    ::umask(before);
    if (error) throw Error(Errc::kSystem, fmt::format("{}: {}", path, error.message()));
    path_ = path;
    listener_.emplace(executor_, BoundedListener::Bounds{kMostCallers, kRequestLimit},
                      [this](StreamSocket socket, const std::string&) { return serve(std::move(socket)); });
    listener_->accept_from(std::move(acceptor));
    log::info("runjob resize {} changes this job", job_id_);
  } catch (const std::exception& error) {
    log::warn("runjob resize cannot reach this job: {}", error.what());
  }
}

void ResizeSocket::stop() {
  listener_.reset();
  if (!path_.empty()) ::unlink(std::exchange(path_, {}).c_str());
}

/// Those of launchers that were killed.
void ResizeSocket::remove_old_sockets() const {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder_, ignored)) {
    const auto name = parse_resize_socket_name(entry.path().filename());
    if (name && ::kill(name->launcher, 0) != 0 && errno == ESRCH) ::unlink(entry.path().c_str());
  }
}

asio::awaitable<void> ResizeSocket::serve(StreamSocket socket) {
  if (!is_of_this_user(socket)) co_return;
  std::string received;
  auto room = asio::dynamic_buffer(received, kLongestRequest);
  const auto [error, size] = co_await asio::async_read_until(socket, room, '\n', kNoThrow);
  if (error || !listener_) co_return;
  const std::string reply = answer(std::string_view(received).substr(0, size - 1)) + "\n";
  const asio::const_buffer bytes = asio::buffer(reply);
  co_await asio::async_write(socket, bytes, kNoThrow);
}

std::string ResizeSocket::answer(std::string_view line) {
  try {
    const ResizeRequest request = resize_request_from_json(line);
    std::string text;
    if (request.ranks) {
      text = changes_.resize(*request.ranks);
    } else if (!request.add.empty()) {
      text = changes_.add(request.add);
    } else {
      text = changes_.remove(request.remove);
    }
    log::info("runjob resize: {}", text);
    return to_json(ResizeReply{true, text});
  } catch (const Error& error) {
    return to_json(ResizeReply{false, error.what()});
  }
}

}  // namespace runjob
