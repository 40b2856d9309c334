#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <sys/types.h>
#include <thread>
#include <vector>

#include "base/unique_handle.hpp"
#include "launcher/ssh/files/public_key.hpp"
#include "tests/launcher/ssh/test_folder.hpp"

namespace runjob {

/// A real sshd on 127.0.0.1 with keys and a configuration of its own, for the user who runs the tests. It ends with
/// this object, and so do its connections.
class TestSshd {
 public:
  /// `host_keys`: types as of ssh-keygen -t. `config`: more lines of sshd_config, which come first and so win.
  explicit TestSshd(const std::vector<std::string>& host_keys = {"ed25519"}, const std::string& config = "");
  ~TestSshd();
  TestSshd(const TestSshd&) = delete;

  int port() const { return port_; }
  const TestFolder& folder() const { return folder_; }

  /// Lets the owner of the key pair `name` of this folder() in.
  void authorize(const std::string& name);

  PublicKey host_key(const std::string& type = "ed25519") const;

  /// Kills sshd and all of its connections, as a power failure would.
  void kill();

  /// Waits until sshd has logged a line with `text`. False when it has ended without one.
  bool wait_for_log(const std::string& text);

 private:
  bool start(const std::string& config);
  void collect_log(UniqueFd log);

  TestFolder folder_;
  int port_ = 0;
  pid_t process_ = -1;
  std::thread reader_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string log_;
  bool ended_ = false;
};

}  // namespace runjob
