#include "launcher/job/channel_local.hpp"

#include <cerrno>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.hpp"
#include "launcher/agent/run_agent.hpp"
#include "launcher/channel/fd_channel.hpp"

namespace runjob {
namespace {

[[noreturn]] void become_agent(int socket, Neighbours neighbours) {
  for (int number = 1; number < NSIG; ++number) ::signal(number, SIG_DFL);
  ::dup2(socket, STDIN_FILENO);
  ::dup2(socket, STDOUT_FILENO);
  ::close_range(3, ~0u, 0);
  ::_exit(run_agent(neighbours));
}

}  // namespace

UniqueFd fork_local_agent(Neighbours neighbours) {
  constexpr int kSocketBytes = 1024 * 1024;  // the kernel may give less
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw system_error("cannot make a socket pair", errno);
  UniqueFd ours(ends[0]);
  const UniqueFd theirs(ends[1]);
  for (const int end : ends) ::setsockopt(end, SOL_SOCKET, SO_SNDBUF, &kSocketBytes, sizeof kSocketBytes);
  const pid_t agent = ::fork();
  if (agent < 0) throw system_error("cannot fork the agent", errno);
  if (agent == 0) become_agent(theirs.get(), neighbours);
  return ours;
}

std::unique_ptr<Channel> local_channel(boost::asio::any_io_executor executor, UniqueFd socket) {
  UniqueFd input(::fcntl(socket.get(), F_DUPFD_CLOEXEC, 3));
  if (!input) throw system_error("cannot duplicate a descriptor", errno);
  return std::make_unique<FdChannel>(executor, std::move(input), std::move(socket));
}

}  // namespace runjob
