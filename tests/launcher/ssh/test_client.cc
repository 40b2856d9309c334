#include "tests/launcher/ssh/test_client.hpp"

#include <array>
#include <fcntl.h>
#include <signal.h>
#include <stdexcept>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/ssh/files/known_hosts.hpp"
#include "launcher/ssh/files/local_account.hpp"
#include "launcher/ssh/ssh_program_needed.hpp"
#include "tests/launcher/ssh/loop.hpp"

namespace runjob {

namespace asio = boost::asio;

TestClient::TestClient() {
  host.name = "127.0.0.1";
  home.write(".ssh/known_hosts", "");
}

void TestClient::know(const TestSshd& sshd, const std::vector<std::string>& types) {
  std::string text = home.read(".ssh/known_hosts");
  for (const std::string& type : types) text += known_hosts_line(host.name, sshd.port(), sshd.host_key(type), "");
  home.write(".ssh/known_hosts", text);
}

void TestClient::make_identity(TestSshd& sshd, const std::string& type, const std::string& passphrase) {
  const std::string name = ".ssh/id_" + type;
  home.make_key(name, {"-t", type, "-N", passphrase});
  sshd.folder().write("new.pub", home.read(name + ".pub"));
  sshd.authorize("new");
}

SshTarget TestClient::target(int port) const {
  LocalAccount account = local_account();
  account.home = home.path("");
  account.home.pop_back();
  const IncludeReader nothing = [](const std::string&) { return std::vector<SshConfigText>(); };
  SshOptions with_port = options;
  if (!with_port.port) with_port.port = port;
  return ssh_target(host, with_port, {parse_ssh_config({config, "config"}, nothing)}, account, agent_socket);
}

std::string TestClient::run(int port, const std::string& command) {
  SshConnector connector(context.get_executor(), options);
  return run_on(context, read_all(connector, target(port), command));
}

std::string TestClient::error(int port) {
  try {
    run(port, "true");
    return "";
  } catch (const SshProgramNeeded& needed) {
    return std::string("ssh: ") + needed.what();
  } catch (const Error& error) {
    return error.what();
  }
}

RemoteMessage TestClient::collect_messages() {
  return [this](std::string_view line) {
    if (line.rfind("Could not chdir to home directory ", 0) != 0) messages.emplace_back(line);
  };
}

asio::awaitable<std::string> TestClient::read_all(SshConnector& connector, SshTarget target, std::string command) {
  const RemoteMessage on_message = collect_messages();
  const std::unique_ptr<Channel> channel = co_await connector.open(std::move(target), std::move(command), on_message);
  std::string output;
  std::array<char, 64 * 1024> buffer;
  for (;;) {
    const std::size_t bytes = co_await channel->read_some(asio::buffer(buffer));
    if (bytes == 0) co_return output;
    output.append(buffer.data(), bytes);
  }
}

TestAgent::TestAgent() : socket_(folder_.path("agent")) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  const UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);
  process_ = ::fork();
  if (process_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::dup2(writer.get(), STDOUT_FILENO);
    ::execlp("ssh-agent", "ssh-agent", "-D", "-a", socket_.c_str(), nullptr);
    ::_exit(127);
  }
  writer.reset();
  char first = 0;  // it says where it listens when it does
  if (::read(reader.get(), &first, 1) != 1) throw std::runtime_error("ssh-agent does not start");
}

TestAgent::~TestAgent() {
  ::kill(process_, SIGTERM);
  ::waitpid(process_, nullptr, 0);
}

void TestAgent::add(const std::string& key, const std::string& passphrase) {
  const std::string ask = folder_.write("ask", "#!/bin/sh\necho '" + passphrase + "'\n");
  run_program({"chmod", "700", ask});
  run_program(
      {"env", "SSH_AUTH_SOCK=" + socket_, "SSH_ASKPASS=" + ask, "SSH_ASKPASS_REQUIRE=force", "ssh-add", "-q", key});
}

}  // namespace runjob
