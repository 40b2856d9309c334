#include "launcher/resize/resize_socket.hpp"

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include <boost/asio/read_until.hpp>
#include <boost/asio/write.hpp>
#include <fmt/format.h>

#include "base/error.hpp"
#include "base/log.hpp"
#include "launcher/resize/resize_request.hpp"

namespace runjob {
namespace {

namespace asio = boost::asio;
using asio::local::stream_protocol;
using boost::system::error_code;

using namespace std::chrono_literals;

constexpr std::size_t kLongestRequest = 64 * 1024;

bool is_of_this_user(stream_protocol::socket& socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return ::getsockopt(socket.native_handle(), SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == ::getuid();
}

}  // namespace

/// A connection. Its handlers own it.
struct ResizeSocket::Caller {
  explicit Caller(stream_protocol::socket accepted) : socket(std::move(accepted)) {}

  stream_protocol::socket socket;
  std::string received;
  std::string reply;
};

ResizeSocket::ResizeSocket(asio::any_io_executor executor, std::string folder, std::string job_id, HostChanges& changes)
    : executor_(std::move(executor)),
      folder_(std::move(folder)),
      job_id_(std::move(job_id)),
      changes_(changes),
      acceptor_(executor_),
      retry_(executor_) {}

void ResizeSocket::start() {
  try {
    make_resize_folder(folder_);
    remove_old_sockets();
    const std::string path = folder_ + "/" + resize_socket_name({job_id_, ::getpid()});
    acceptor_.open();
    const mode_t before = ::umask(0177);
    error_code error;
    acceptor_.bind(stream_protocol::endpoint(path), error);
    ::umask(before);
    if (error) throw Error(Errc::kSystem, fmt::format("{}: {}", path, error.message()));
    path_ = path;
    acceptor_.listen();
    log::info("runjob resize {} changes this job", job_id_);
    accept();
  } catch (const std::exception& error) {
    log::warn("runjob resize cannot reach this job: {}", error.what());
  }
}

void ResizeSocket::stop() {
  error_code ignored;
  acceptor_.close(ignored);
  retry_.cancel();
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

void ResizeSocket::accept() {
  acceptor_.async_accept([this](error_code error, stream_protocol::socket socket) {
    if (error == asio::error::operation_aborted || !acceptor_.is_open()) return;
    if (error) {  // such as too many open files
      retry_.expires_after(100ms);
      return retry_.async_wait([this](error_code stopped) {
        if (!stopped && acceptor_.is_open()) accept();
      });
    }
    if (is_of_this_user(socket)) serve(std::make_shared<Caller>(std::move(socket)));
    accept();
  });
}

void ResizeSocket::serve(const std::shared_ptr<Caller>& caller) {
  asio::async_read_until(caller->socket, asio::dynamic_buffer(caller->received, kLongestRequest), '\n',
                         [this, caller](error_code error, std::size_t size) {
                           if (error || !acceptor_.is_open()) return;
                           const std::string_view line(caller->received.data(), size - 1);
                           caller->reply = answer(line) + "\n";
                           asio::async_write(caller->socket, asio::buffer(caller->reply),
                                             [caller](error_code, std::size_t) {});
                         });
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
