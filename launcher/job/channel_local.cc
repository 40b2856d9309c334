#include "launcher/job/channel_local.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/descriptors.hpp"
#include "base/environment.hpp"
#include "base/error.hpp"
#include "base/program_path.hpp"
#include "hostfile/local_host.hpp"
#include "launcher/agent/run_agent.hpp"
#include "launcher/channel/fd_channel.hpp"
#include "launcher/processes/child_process.hpp"

namespace runjob {
namespace {

/// Closes all but the standard descriptors. close_range(2) fails before Linux 5.9 and under some seccomp filters.
void close_others() {
  if (::close_range(3, ~0u, 0) == 0) return;
  for (const int descriptor : open_descriptors()) {
    if (descriptor > STDERR_FILENO) ::close(descriptor);
  }
}

[[noreturn]] void become_agent(UniqueFd launchers_end, UniqueFd own_end, Neighbours neighbours) {
  for (int number = 1; number < NSIG; ++number) ::signal(number, SIG_DFL);
  ::dup2(own_end.get(), STDIN_FILENO);
  ::dup2(own_end.get(), STDOUT_FILENO);
  launchers_end.reset();  // in any case: while it is open, the channel does not end with the launcher
  own_end.reset();
  close_others();
  ::_exit(run_agent(neighbours));
}

/// Our end and the agent's.
std::array<UniqueFd, 2> socket_pair() {
  constexpr int kSocketBytes = 1024 * 1024;  // the kernel may give less
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw system_error("cannot make a socket pair", errno);
  for (const int end : ends) ::setsockopt(end, SOL_SOCKET, SO_SNDBUF, &kSocketBytes, sizeof kSocketBytes);
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

}  // namespace

UniqueFd fork_local_agent(Neighbours neighbours) {
  auto [ours, theirs] = socket_pair();
  const pid_t agent = ::fork();
  if (agent < 0) throw system_error("cannot fork the agent", errno);
  if (agent == 0) become_agent(std::move(ours), std::move(theirs), neighbours);
  return std::move(ours);
}

std::unique_ptr<Channel> local_channel(boost::asio::any_io_executor executor, UniqueFd socket) {
  UniqueFd input(::fcntl(socket.get(), F_DUPFD_CLOEXEC, 3));
  if (!input) throw system_error("cannot duplicate a descriptor", errno);
  return std::make_unique<FdChannel>(executor, std::move(input), std::move(socket));
}

bool is_local(const JobSpec& spec, const Host& host) {
  std::array<char, 256> own_name{};
  ::gethostname(own_name.data(), own_name.size() - 1);
  return !spec.slurm && is_this_host(host, own_name.data());
}

std::unique_ptr<Channel> start_local_agent(boost::asio::any_io_executor executor) {
  auto [ours, theirs] = socket_pair();
  ChildSpec child;
  child.command = {program_path("runjob-agent")};
  child.environment = current_environment();
  child.standard_input = theirs.get();
  child.standard_output = theirs.get();
  child.standard_error = STDERR_FILENO;
  child.new_session = true;  // Ctrl-C is ours to pass on
  const ChildStart start = start_child(child);
  if (start.pid < 0)
    throw Error(Errc::kUnavailable, fmt::format("cannot start {}: {}; install runjob again", child.command.front(),
                                                std::strerror(start.error.error_number)));
  return local_channel(std::move(executor), std::move(ours));
}

}  // namespace runjob
