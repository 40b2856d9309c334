#pragma once

#include <array>
#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <vector>

#include "base/unique_handle.hpp"
#include "runtime/mpi_start/foreign_launcher.hpp"
#include "runtime/mpi_start/pmi_message.hpp"

namespace runjob::runtime {

/// What a launcher is to the ranks of a job that are threads of a test: keeps PMI-1's values and barriers.
/// tests/python/mpi has the real launchers.
class PmiServer {
 public:
  /// `answers`: said in place of the right ones, by command; an empty text closes the connection.
  explicit PmiServer(int size, std::map<std::string, std::string> answers = {})
      : size_(size), answers_(std::move(answers)) {
    for (int rank = 0; rank < size; ++rank) {
      std::array<int, 2> pair{};
      if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()) != 0)
        throw std::runtime_error("socketpair");
      clients_.emplace_back(pair[0]);
      servers_.emplace_back(pair[1]);
    }
    for (int rank = 0; rank < size; ++rank) threads_.emplace_back([this, rank] { serve(rank); });
  }
  ~PmiServer() {
    for (UniqueFd& client : clients_) static_cast<void>(::shutdown(client.get(), SHUT_RDWR));
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    came_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  ForeignLauncher launcher(int rank) const {
    ForeignLauncher launcher;
    launcher.store = ForeignLauncher::Store::kPmi;
    launcher.name = "a test";
    launcher.rank = rank;
    launcher.size = size_;
    launcher.pmi_descriptor = clients_[static_cast<std::size_t>(rank)].get();
    return launcher;
  }

  int finalized() {
    const std::lock_guard lock(mutex_);
    return finalized_;
  }

 private:
  void serve(int rank) {
    const int descriptor = servers_[static_cast<std::size_t>(rank)].get();
    std::string line;
    char byte = 0;
    while (::recv(descriptor, &byte, 1, 0) == 1) {
      line += byte;
      if (byte != '\n') continue;
      const PmiMessage question = parse_pmi_message(line);
      const auto scripted = answers_.find(question.command);
      const std::string reply = scripted != answers_.end() ? scripted->second : answer(question);
      if (reply.empty()) break;
      static_cast<void>(::send(descriptor, reply.data(), reply.size(), MSG_NOSIGNAL));
      line.clear();
    }
    static_cast<void>(::shutdown(descriptor, SHUT_RDWR));
  }

  std::string answer(const PmiMessage& question) {
    std::unique_lock lock(mutex_);
    if (question.command == "init") return "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1\n";
    if (question.command == "get_maxes") return "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024\n";
    if (question.command == "get_my_kvsname") return "cmd=my_kvsname kvsname=kvs_1_0\n";
    if (question.command == "put") {
      const bool is_new = values_.emplace(question.value("key"), question.value("value")).second;
      return is_new ? "cmd=put_result rc=0 msg=success\n" : "cmd=put_result rc=-1 msg=duplicate_key\n";
    }
    if (question.command == "get") {
      const auto found = values_.find(question.value("key"));
      if (found == values_.end()) return "cmd=get_result rc=-1 msg=key_not_found value=unknown\n";
      return "cmd=get_result rc=0 msg=success value=" + found->second + "\n";
    }
    if (question.command == "finalize") return ++finalized_, "cmd=finalize_ack\n";
    const int barrier = here_++ / size_;
    came_.notify_all();
    came_.wait(lock, [&] { return here_ >= (barrier + 1) * size_ || ended_; });
    return "cmd=barrier_out\n";
  }

  const int size_;
  const std::map<std::string, std::string> answers_;
  std::vector<UniqueFd> clients_, servers_;
  std::mutex mutex_;
  std::condition_variable came_;
  std::map<std::string, std::string> values_;
  int here_ = 0, finalized_ = 0;
  bool ended_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace runjob::runtime
