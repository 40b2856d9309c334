#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

#include "base/version.hpp"

/// The request of `runjob resize` to the launcher of a running elastic job, and the socket that carries it. Each such
/// launcher has a Unix socket in a folder of its user. The job's id and the launcher's process id are in its name. One
/// connection carries one request and one reply, each a line of JSON.
/// Threads  any; the functions have no state.
namespace runjob {

/// Exactly one of the first three is set.
struct ResizeRequest {
  std::optional<int> ranks;
  std::string add;                 ///< hosts as for -H
  std::string remove;              ///< likewise
  std::string version = kVersion;  ///< of the sender's runjob; other versions may read the request

  bool operator==(const ResizeRequest&) const = default;
};

struct ResizeReply {
  bool ok = false;
  std::string text;                ///< one line for the user
  std::string version = kVersion;  ///< likewise

  bool operator==(const ResizeReply&) const = default;
};

/// Without the end of the line.
std::string to_json(const ResizeRequest& request);
std::string to_json(const ResizeReply& reply);
/// Errors  Error(kProtocol), also for a request without exactly one of its fields, and for a number of ranks below 0 or
///         beyond an int. If the sender's runjob is of another version, the error names both versions.
ResizeRequest resize_request_from_json(std::string_view text);
ResizeReply resize_reply_from_json(std::string_view text);

/// The folder of this user's sockets: "/tmp/runjob-UID".
std::string resize_folder();
/// Makes the folder if it is missing.
/// Errors  Error(kSystem) when it cannot be made, and those of check_resize_folder().
void make_resize_folder(const std::string& folder);
/// Checks that the folder is this user's alone: everybody may make a folder of its name in /tmp. A missing one passes.
/// Errors  Error(kUsage) naming the folder, its owner and mode, and the remedy.
void check_resize_folder(const std::string& folder);

struct ResizeSocketName {
  std::string job_id;
  pid_t launcher = 0;
};
/// "JOB.PID.sock"
std::string resize_socket_name(const ResizeSocketName& name);
/// nullopt for another file.
std::optional<ResizeSocketName> parse_resize_socket_name(const std::string& file);

/// Connects to the socket, sends the request and blocks until the reply is there. Nothing is sent unless the process
/// that listens belongs to this user or to root.
/// Errors  Error(kUsage) when another user's process listens there, Error(kConnect) when none does or it hangs up,
///         Error(kTimeout) when nothing has arrived for 10 s, Error(kProtocol). A request that the launcher rejects is
///         a reply without `ok`.
ResizeReply ask_launcher(const std::string& socket, const ResizeRequest& request);

}  // namespace runjob
