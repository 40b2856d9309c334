#pragma once

#include <memory>
#include <string>
#include <vector>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>

#include "launcher/ssh/ssh_connector.hpp"
#include "tests/launcher/ssh/test_folder.hpp"
#include "tests/launcher/ssh/test_sshd.hpp"

namespace runjob {

/// Somebody who connects to a TestSshd: has a home with keys and known hosts, and a loop.
class TestClient {
 public:
  TestClient();

  TestFolder home;
  Host host;
  SshOptions options;
  std::string config;        ///< text of ~/.ssh/config
  std::string agent_socket;  ///< of ssh-agent
  boost::asio::io_context context;
  std::vector<std::string> messages;  ///< what commands said on their standard error

  /// Writes the host's keys of these types into known_hosts.
  void know(const TestSshd& sshd, const std::vector<std::string>& types = {"ed25519"});

  /// Makes ~/.ssh/id_TYPE and lets its owner in.
  void make_identity(TestSshd& sshd, const std::string& type = "ed25519", const std::string& passphrase = "");

  /// What to connect to when the host list names 127.0.0.1.
  SshTarget target(int port) const;

  /// Runs `command` on the host and returns all of its output, or throws what open() does.
  std::string run(int port, const std::string& command);

  /// Appends each line to `messages`, except sshd's own about an account whose home is missing, as in a container.
  RemoteMessage collect_messages();

  /// What run() throws; "" when it does not.
  std::string error(int port);

 private:
  boost::asio::awaitable<std::string> read_all(SshConnector& connector, SshTarget target, std::string command);
};

/// An ssh-agent that ends with this object.
class TestAgent {
 public:
  TestAgent();
  ~TestAgent();
  TestAgent(const TestAgent&) = delete;

  const std::string& socket() const { return socket_; }

  /// Adds a private key, whose passphrase may be given.
  void add(const std::string& key, const std::string& passphrase = "");

 private:
  TestFolder folder_;
  std::string socket_;
  pid_t process_ = -1;
};

}  // namespace runjob
