#include "launcher/resize/resize_request.hpp"

#include <cerrno>
#include <charconv>
#include <cstring>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/codec/message_codec.hpp"
#include "base/error.hpp"
#include "base/unique_handle.hpp"
#include "base/version.hpp"

namespace runjob {
namespace {

constexpr int kPatienceMs = 10'000;
constexpr std::size_t kLongestReply = 1024 * 1024;
constexpr std::string_view kEnding = ".sock";

UniqueFd connect_to(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path)
    throw Error(Errc::kConnect, fmt::format("{}: the path is too long", path));
  std::memcpy(address.sun_path, path.c_str(), path.size());
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket || ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    throw Error(Errc::kConnect, fmt::format("{}: {}", path, std::strerror(errno)));
  return socket;
}

void check_peer(int socket, const std::string& path) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) throw system_error("cannot ask " + path, errno);
  if (peer.uid != ::getuid() && peer.uid != 0)
    throw Error(Errc::kUsage,
                fmt::format("resize: user {} listens at {}, and not user {}; nothing was sent to it; rm {}", peer.uid,
                            path, ::getuid(), path));
}

}  // namespace

void fields(auto& io, Is<ResizeRequest> auto& m) {
  io("ranks", m.ranks);
  io.optional("add", m.add);
  io.optional("remove", m.remove);
  io.optional("version", m.version);
}

void check(const ResizeRequest& m) {
  const int given = (m.ranks ? 1 : 0) + (m.add.empty() ? 0 : 1) + (m.remove.empty() ? 0 : 1);
  if (given != 1) throw Error(Errc::kProtocol, "it does not have exactly one of ranks, add and remove");
  if (m.ranks && *m.ranks < 0) throw Error(Errc::kProtocol, fmt::format("a job cannot have {} ranks", *m.ranks));
}

void fields(auto& io, Is<ResizeReply> auto& m) {
  io("ok", m.ok);
  io("text", m.text);
  io.optional("version", m.version);
}

namespace {

/// The error also names both versions of runjob, unless the sender has this one.
template <class Message>
Message decode_resize(std::string_view text, const char* malformed) {
  try {
    return decode_json<Message>(text, malformed);
  } catch (const Error& error) {
    const nlohmann::json document = try_parse_json(text);
    const nlohmann::json version =
        document.is_object() ? document.value("version", nlohmann::json()) : nlohmann::json();
    if (version == kVersion) throw;
    const std::string sender = version.is_string() ? version.get<std::string>() : "that does not send its version";
    throw Error(Errc::kProtocol, fmt::format("{}; its sender is a runjob {}, and this is runjob {}: `runjob resize` "
                                             "must be of the version that has started the job",
                                             error.what(), sender, kVersion));
  }
}

}  // namespace

std::string to_json(const ResizeRequest& request) {
  return encode_json(request);
}

std::string to_json(const ResizeReply& reply) {
  return encode_json(reply);
}

ResizeRequest resize_request_from_json(std::string_view text) {
  return decode_resize<ResizeRequest>(text, "the request to resize the job is malformed");
}

ResizeReply resize_reply_from_json(std::string_view text) {
  return decode_resize<ResizeReply>(text, "resize: the launcher's reply is malformed");
}

std::string resize_folder() {
  return fmt::format("/tmp/runjob-{}", ::getuid());
}

void make_resize_folder(const std::string& folder) {
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) throw system_error("cannot make " + folder, errno);
  check_resize_folder(folder);
}

void check_resize_folder(const std::string& folder) {
  struct stat status {};
  if (::lstat(folder.c_str(), &status) != 0) {
    if (errno == ENOENT) return;
    throw system_error("cannot look at " + folder, errno);
  }
  const auto refuse = [&folder](const std::string& reason) {
    throw Error(Errc::kUsage, fmt::format("{} is not a folder of this user alone: {}", folder, reason));
  };
  if (status.st_uid != ::getuid())
    refuse(
        fmt::format("it belongs to user {}; only that user and root can remove it: rm -r {}", status.st_uid, folder));
  if (!S_ISDIR(status.st_mode)) refuse(fmt::format("it is a link or a file; rm {}", folder));
  if ((status.st_mode & 077) != 0)
    refuse(fmt::format("its mode is {:04o}; chmod 0700 {}", status.st_mode & 07777, folder));
}

std::string resize_socket_name(const ResizeSocketName& name) {
  return fmt::format("{}.{}{}", name.job_id, name.launcher, kEnding);
}

std::optional<ResizeSocketName> parse_resize_socket_name(const std::string& file) {
  if (!file.ends_with(kEnding)) return std::nullopt;
  const std::string stem = file.substr(0, file.size() - kEnding.size());
  const std::size_t dot = stem.rfind('.');
  if (dot == std::string::npos || dot == 0) return std::nullopt;
  ResizeSocketName name{stem.substr(0, dot), 0};
  const char* end = stem.data() + stem.size();
  const auto [rest, error] = std::from_chars(stem.data() + dot + 1, end, name.launcher);
  if (error != std::errc() || rest != end || name.launcher <= 0) return std::nullopt;
  return name;
}

ResizeReply ask_launcher(const std::string& path, const ResizeRequest& request) {
  const UniqueFd socket = connect_to(path);
  check_peer(socket.get(), path);
  const std::string line = to_json(request) + "\n";
  if (::send(socket.get(), line.data(), line.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(line.size()))
    throw Error(Errc::kConnect, fmt::format("{}: {}", path, std::strerror(errno)));
  std::string reply;
  while (reply.find('\n') == std::string::npos) {
    pollfd wanted{socket.get(), POLLIN, 0};
    const int ready = ::poll(&wanted, 1, kPatienceMs);
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) throw Error(Errc::kTimeout, "the launcher does not answer; is it stopped?");
    char bytes[4096];
    const ssize_t count = ::recv(socket.get(), bytes, sizeof bytes, 0);
    if (count <= 0 || reply.size() > kLongestReply)
      throw Error(Errc::kConnect, fmt::format("{}: the launcher has closed the connection", path));
    reply.append(bytes, static_cast<std::size_t>(count));
  }
  return resize_reply_from_json(reply.substr(0, reply.find('\n')));
}

}  // namespace runjob
