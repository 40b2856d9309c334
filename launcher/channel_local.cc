#include "launcher/channel_local.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/environment.hpp"
#include "base/error.hpp"
#include "base/unique_handle.hpp"
#include "launcher/child_process.hpp"
#include "launcher/fd_channel.hpp"

namespace runjob {

std::unique_ptr<Channel> start_local_agent(boost::asio::any_io_executor executor, const std::string& agent_path) {
  constexpr int kSocketBytes = 1024 * 1024;  // the kernel may give less
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw system_error("cannot make a socket pair", errno);
  UniqueFd ours(ends[0]);
  const UniqueFd theirs(ends[1]);
  for (const int end : ends) ::setsockopt(end, SOL_SOCKET, SO_SNDBUF, &kSocketBytes, sizeof kSocketBytes);

  ChildSpec child;
  child.command = {agent_path};
  child.environment = current_environment();
  child.standard_input = theirs.get();
  child.standard_output = theirs.get();
  child.standard_error = STDERR_FILENO;
  const ChildStart start = start_child(child);
  if (start.pid < 0) {
    throw Error(Errc::kUnavailable, "cannot start " + agent_path + ": " + std::strerror(start.error.error_number));
  }
  UniqueFd input(::fcntl(ours.get(), F_DUPFD_CLOEXEC, 3));
  if (!input) throw system_error("cannot duplicate a descriptor", errno);
  return std::make_unique<FdChannel>(executor, std::move(input), std::move(ours));
}

}  // namespace runjob
