#include "launcher/resize/resize_request.hpp"

#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/json_text.hpp"
#include "base/unique_handle.hpp"

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

/// Another number of JSON's would be cut to an int.
int int_of(const nlohmann::json& value) {
  const auto number = value.is_number_integer() ? value.get<std::int64_t>() : -1;
  if (!std::in_range<int>(number) || number < 0)
    throw Error(Errc::kProtocol, "resize: the number of ranks is no number that a job can have");
  return static_cast<int>(number);
}

}  // namespace

std::string to_json(const ResizeRequest& request) {
  nlohmann::json document = nlohmann::json::object();
  if (request.ranks) document["ranks"] = *request.ranks;
  if (!request.add.empty()) document["add"] = request.add;
  if (!request.remove.empty()) document["remove"] = request.remove;
  return json_text(document);
}

std::string to_json(const ResizeReply& reply) {
  return json_text({{"ok", reply.ok}, {"text", reply.text}});
}

ResizeRequest resize_request_from_json(std::string_view text) {
  try {
    const nlohmann::json document = parse_json(text);
    ResizeRequest request;
    if (document.contains("ranks")) request.ranks = int_of(document.at("ranks"));
    request.add = document.value("add", "");
    request.remove = document.value("remove", "");
    const int given = (request.ranks ? 1 : 0) + (request.add.empty() ? 0 : 1) + (request.remove.empty() ? 0 : 1);
    if (given != 1) throw Error(Errc::kProtocol, "resize: a request has one of ranks, add and remove");
    return request;
  } catch (const nlohmann::json::exception& error) {
    throw Error(Errc::kProtocol, fmt::format("resize: {}", error.what()));
  }
}

ResizeReply resize_reply_from_json(std::string_view text) {
  try {
    const nlohmann::json document = parse_json(text);
    return {document.at("ok").get<bool>(), document.at("text").get<std::string>()};
  } catch (const nlohmann::json::exception& error) {
    throw Error(Errc::kProtocol, fmt::format("resize: {}", error.what()));
  }
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
