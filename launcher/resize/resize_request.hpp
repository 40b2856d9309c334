#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

/// The request of `runjob resize` to the launcher of a running elastic job, and its way there: each such launcher has a
/// socket in a folder of its user, with the job's id and the launcher's process number in its name. One connection
/// carries one line of JSON each way.
namespace runjob {

/// One of the three.
struct ResizeRequest {
  std::optional<int> ranks;
  std::string add;     ///< hosts as for -H
  std::string remove;  ///< likewise

  bool operator==(const ResizeRequest&) const = default;
};

struct ResizeReply {
  bool ok = false;
  std::string text;  ///< one line for the user

  bool operator==(const ResizeReply&) const = default;
};

/// Without the end of the line.
std::string to_json(const ResizeRequest& request);
std::string to_json(const ResizeReply& reply);
/// Errors  Error(kProtocol).
ResizeRequest resize_request_from_json(std::string_view text);
ResizeReply resize_reply_from_json(std::string_view text);

/// The folder of this user's sockets.
std::string resize_folder();
/// Makes the folder if it is missing. Errors  Error(kSystem) when it is not this user's alone.
void make_resize_folder(const std::string& folder);

struct ResizeSocketName {
  std::string job_id;
  pid_t launcher = 0;
};
/// "JOB.PID.sock"
std::string resize_socket_name(const ResizeSocketName& name);
/// nullopt for another file.
std::optional<ResizeSocketName> parse_resize_socket_name(const std::string& file);

/// Connects to the socket, sends the request and waits for the reply, for some seconds at most.
/// Errors  Error(kConnect) when nobody listens there, Error(kTimeout), Error(kProtocol).
ResizeReply ask_launcher(const std::string& socket, const ResizeRequest& request);

}  // namespace runjob
