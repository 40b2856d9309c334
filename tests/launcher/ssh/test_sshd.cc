#include "tests/launcher/ssh/test_sshd.hpp"

#include <arpa/inet.h>
#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <netinet/in.h>
#include <signal.h>
#include <stdexcept>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

namespace runjob {
namespace {

/// One that was free a moment ago; sshd itself tells whether it still is.
int free_port() {
  const UniqueFd probe(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (::bind(probe.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      ::getsockname(probe.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0)
    throw std::runtime_error("no free port");
  return ntohs(address.sin_port);
}

/// `process` and all that it has started and that have not lost their parent. sshd gives each connection a session of
/// its own, so there is no group to kill.
void kill_tree(pid_t process) {
  ::kill(process, SIGSTOP);  // so that the list stays true
  std::ifstream list(fmt::format("/proc/{0}/task/{0}/children", process));
  for (pid_t child = 0; list >> child;) kill_tree(child);
  ::kill(process, SIGKILL);
}

}  // namespace

TestSshd::TestSshd(const std::vector<std::string>& host_keys, const std::string& config) {
  constexpr int kMostPorts = 20;
  if (::getuid() == 0) ::mkdir("/run/sshd", 0755);  // sshd wants to find it; elsewhere its service makes it
  std::string text = "MaxStartups 100:30:100\n" + config + "\n";  // of this one the last counts
  for (const std::string& type : host_keys) text += "HostKey " + folder_.make_key("host_" + type, {"-t", type}) + "\n";
  text += fmt::format(
      "ListenAddress 127.0.0.1\nPidFile none\nAuthorizedKeysFile {}\nStrictModes no\nUsePAM no\n"
      "PasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin yes\n",
      folder_.path("authorized_keys"));
  text += fmt::format("SetEnv HOME={}\n", folder_.path("home"));  // the shell reads no start-up file of the account
  for (int i = 0; i < kMostPorts; ++i) {
    port_ = free_port();
    if (start(text + fmt::format("Port {}\n", port_))) return;
    kill();
    if (log_.find("Address already in use") == std::string::npos) break;
  }
  throw std::runtime_error("sshd does not start: " + log_);
}

TestSshd::~TestSshd() {
  kill();
}

void TestSshd::authorize(const std::string& name) {
  folder_.write("authorized_keys", folder_.read("authorized_keys") + folder_.read(name + ".pub"));
}

PublicKey TestSshd::host_key(const std::string& type) const {
  return parse_public_key(folder_.read("host_" + type + ".pub")).value();
}

void TestSshd::kill() {
  if (process_ > 0) {
    kill_tree(process_);
    ::waitpid(process_, nullptr, 0);
    process_ = -1;
  }
  if (reader_.joinable()) reader_.join();
}

bool TestSshd::wait_for_log(const std::string& text) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return ended_ || log_.find(text) != std::string::npos; });
  return log_.find(text) != std::string::npos;
}

bool TestSshd::start(const std::string& config) {
  const std::string file = folder_.write("sshd_config", config);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  UniqueFd log(ends[0]);
  const UniqueFd writer(ends[1]);
  ended_ = false;
  process_ = ::fork();
  if (process_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::dup2(writer.get(), STDERR_FILENO);
    ::execl("/usr/sbin/sshd", "/usr/sbin/sshd", "-D", "-e", "-f", file.c_str(), nullptr);
    ::_exit(127);
  }
  reader_ = std::thread([this, end = log.release()] { collect_log(UniqueFd(end)); });
  return wait_for_log("Server listening on");
}

void TestSshd::collect_log(UniqueFd log) {
  char buffer[4096];
  for (ssize_t got; (got = ::read(log.get(), buffer, sizeof buffer)) > 0;) {
    const std::lock_guard lock(mutex_);
    log_.append(buffer, static_cast<std::size_t>(got));
    changed_.notify_all();
  }
  const std::lock_guard lock(mutex_);
  ended_ = true;
  changed_.notify_all();
}

}  // namespace runjob
