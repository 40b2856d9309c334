#include "tests/rendezvous/local_rendezvous.hpp"

#include <algorithm>
#include <thread>
#include <utility>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include "rendezvous/server/http_server.hpp"

namespace runjob::rendezvous {

JoinReply place(const std::vector<std::string>& hosts, int rank, std::chrono::milliseconds start_timeout) {
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

/// The service, its server and the thread that runs both.
class LocalRendezvous::Loop {
 public:
  Loop(const std::vector<std::string>& hosts, std::chrono::milliseconds start_timeout) : timer_(context_) {
    std::vector<Member> members;
    for (const std::string& host : hosts) members.push_back({host});
    service_ = std::make_unique<Service>(std::move(members), start_timeout, [hosts, start_timeout](int rank) {
      const JoinReply reply = place(hosts, rank, start_timeout);
      return join_reply(reply, to_json(static_cast<const Topology&>(reply)));
    });
  }

  ~Loop() {
    boost::asio::post(context_, [this] {
      server_.reset();
      timer_.cancel();
      work_.reset();
    });
    thread_.join();
  }

  /// `where`: a path, or an address and a key.
  template <class... Where>
  void serve(const HttpLimits& limits, const Where&... where) {
    const HttpServer::Handler handler = [this](Request request, Reply reply) {
      service_->handle(std::move(request), std::chrono::steady_clock::now(), std::move(reply));
      set_timer();
    };
    server_ = std::make_unique<HttpServer>(context_.get_executor(), where..., handler, limits);
    thread_ = std::thread([this] { context_.run(); });
  }

  int port() const { return server_->port(); }
  void post(std::function<void(Service&)> call) {
    boost::asio::post(context_, [this, call = std::move(call)] { call(*service_); });
  }

 private:
  void set_timer() {
    timer_.expires_at(service_->next_deadline());
    timer_.async_wait([this](boost::system::error_code error) {
      if (error) return;
      service_->expire(std::chrono::steady_clock::now());
      set_timer();
    });
  }

  boost::asio::io_context context_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_ =
      boost::asio::make_work_guard(context_);
  boost::asio::steady_timer timer_;
  std::unique_ptr<Service> service_;
  std::unique_ptr<HttpServer> server_;
  std::thread thread_;
};

LocalRendezvous::LocalRendezvous(std::vector<std::string> hosts, std::chrono::milliseconds start_timeout,
                                 HttpLimits limits)
    : path_(directory_.path() + "/rendezvous.sock"), loop_(std::make_unique<Loop>(hosts, start_timeout)) {
  loop_->serve(limits, path_);
}

LocalRendezvous::LocalRendezvous(OverTcp, std::vector<std::string> hosts, std::chrono::milliseconds start_timeout,
                                 HttpLimits limits)
    : path_(directory_.path() + "/rendezvous.sock"), loop_(std::make_unique<Loop>(hosts, start_timeout)) {
  key_.write_file(key_file());
  loop_->serve(limits, HttpServer::TcpAddress{"127.0.0.1", 0}, key_);
}

LocalRendezvous::~LocalRendezvous() = default;

std::string LocalRendezvous::address() const {
  return port() == 0 ? "unix:" + path_ : "http://127.0.0.1:" + std::to_string(port());
}

int LocalRendezvous::port() const {
  return loop_->port();
}

std::string LocalRendezvous::status() {
  return on_service([](Service& service) { return service.status_json(std::chrono::steady_clock::now()); });
}

void LocalRendezvous::close(const std::string& reason) {
  on_service([&](Service& service) { service.close(reason); });
}

void LocalRendezvous::post(std::function<void(Service&)> call) {
  loop_->post(std::move(call));
}

}  // namespace runjob::rendezvous
