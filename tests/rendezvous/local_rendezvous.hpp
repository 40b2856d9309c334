#pragma once

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include "rendezvous/server/http_server.hpp"
#include "rendezvous/server/service.hpp"

namespace runjob::rendezvous {

/// A fresh directory of mode 0700, removed with its contents at the end.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    const char* base = std::getenv("TMPDIR");
    path_ = std::string(base == nullptr ? "/tmp" : base) + "/runjob-test-XXXXXX";
    if (::mkdtemp(path_.data()) == nullptr) throw std::runtime_error("mkdtemp " + path_);
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// The place of `rank` in a job whose rank r is on a host named `hosts[r]`.
inline JoinReply place(const std::vector<std::string>& hosts, int rank, std::chrono::milliseconds start_timeout) {
  JoinReply reply;
  reply.rank = rank;
  reply.size = static_cast<int>(hosts.size());
  reply.hostname = hosts[static_cast<std::size_t>(rank)];
  reply.start_timeout_seconds = std::chrono::duration<double>(start_timeout).count();
  std::vector<int> ranks_of;  // by host index
  std::vector<int> local_ranks;
  for (const std::string& name : hosts) {
    const auto known = std::find(reply.hostnames.begin(), reply.hostnames.end(), name);
    const auto host = static_cast<std::size_t>(known - reply.hostnames.begin());
    if (known == reply.hostnames.end()) {
      reply.hostnames.push_back(name);
      ranks_of.push_back(0);
    }
    reply.hosts.push_back(static_cast<int>(host));
    local_ranks.push_back(ranks_of[host]++);
  }
  const auto own_host = static_cast<std::size_t>(reply.hosts[static_cast<std::size_t>(rank)]);
  reply.local_rank = local_ranks[static_cast<std::size_t>(rank)];
  reply.local_size = ranks_of[own_host];
  reply.cross_size = 0;
  for (std::size_t host = 0; host < ranks_of.size(); ++host) {
    if (ranks_of[host] <= reply.local_rank) continue;
    if (host == own_host) reply.cross_rank = reply.cross_size;
    ++reply.cross_size;
  }
  return reply;
}

/// On TCP at 127.0.0.1, where everybody must hold the key.
struct OverTcp {};

/// A rendezvous for tests that run real ranks without the launcher: the service and its HTTP front on a
/// thread of its own, on a Unix socket in a fresh directory. It answers joins itself.
///
///     LocalRendezvous rendezvous({"a", "a", "b"});   // ranks 0 and 1 on host a, rank 2 on host b
///     ... RUNJOB_RENDEZVOUS=rendezvous.address(), RUNJOB_RANK=0 ...
///
/// Threads  any may call; on_service() runs a function on the service's thread.
class LocalRendezvous {
 public:
  explicit LocalRendezvous(std::vector<std::string> hosts,
                           std::chrono::milliseconds start_timeout = std::chrono::seconds(30),
                           HttpServer::Limits limits = {})
      : LocalRendezvous(NotServing(), std::move(hosts), start_timeout) {
    on_service(
        [&](Service&) { server_ = std::make_unique<HttpServer>(context_.get_executor(), path_, handler(), limits); });
  }

  LocalRendezvous(OverTcp, std::vector<std::string> hosts,
                  std::chrono::milliseconds start_timeout = std::chrono::seconds(30), HttpServer::Limits limits = {})
      : LocalRendezvous(NotServing(), std::move(hosts), start_timeout) {
    key_.write_file(key_file());
    on_service([&](Service&) {
      server_ = std::make_unique<HttpServer>(context_.get_executor(), HttpServer::TcpAddress{"127.0.0.1", 0}, key_,
                                             handler(), limits);
    });
  }

  ~LocalRendezvous() {
    on_service([this](Service&) {
      server_.reset();
      timer_.cancel();
      work_.reset();
    });
    thread_.join();
  }

  std::string address() const { return port() == 0 ? "unix:" + path_ : "http://127.0.0.1:" + std::to_string(port()); }
  const std::string& path() const { return path_; }
  /// Over TCP:
  int port() const { return server_->port(); }
  const JobKey& key() const { return key_; }
  std::string key_file() const { return directory_.path() + "/key"; }

  /// What `call(service)` returns.
  template <class Call>
  std::invoke_result_t<Call, Service&> on_service(Call call) {
    std::packaged_task<std::invoke_result_t<Call, Service&>()> task([&] { return call(*service_); });
    auto result = task.get_future();
    boost::asio::post(context_, [&task] { task(); });
    return result.get();
  }

  std::string status() {
    return on_service([](Service& service) { return service.status_json(std::chrono::steady_clock::now()); });
  }
  /// Ends the job: every wait gets 410.
  void close(const std::string& reason) {
    on_service([&](Service& service) { service.close(reason); });
  }

 private:
  struct NotServing {};
  LocalRendezvous(NotServing, std::vector<std::string> hosts, std::chrono::milliseconds start_timeout)
      : path_(directory_.path() + "/rendezvous.sock"), timer_(context_) {
    std::vector<Member> members;
    for (const std::string& host : hosts) members.push_back({host});
    service_ = std::make_unique<Service>(std::move(members), start_timeout, [hosts, start_timeout](int rank) {
      const JoinReply reply = place(hosts, rank, start_timeout);
      return join_reply(reply, to_json(static_cast<const Topology&>(reply)));
    });
    thread_ = std::thread([this] { context_.run(); });
  }

  HttpServer::Handler handler() {
    return [this](Request request, Reply reply) {
      service_->handle(std::move(request), std::chrono::steady_clock::now(), std::move(reply));
      set_timer();
    };
  }

  void set_timer() {
    timer_.expires_at(service_->next_deadline());
    timer_.async_wait([this](boost::system::error_code error) {
      if (error) return;
      service_->expire(std::chrono::steady_clock::now());
      set_timer();
    });
  }

  TemporaryDirectory directory_;
  const std::string path_;
  const JobKey key_ = JobKey::random();
  boost::asio::io_context context_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_ =
      boost::asio::make_work_guard(context_);
  boost::asio::steady_timer timer_;
  std::unique_ptr<Service> service_;
  std::unique_ptr<HttpServer> server_;
  std::thread thread_;
};

}  // namespace runjob::rendezvous
