#include "benchmarks/rendezvous/direct.hpp"

#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <fmt/format.h>

#include "hostfile/parse_hosts.hpp"
#include "launcher/supervision/rank_place.hpp"
#include "rendezvous/client.hpp"
#include "rendezvous/server/http_server.hpp"
#include "rendezvous/server/service.hpp"

namespace runjob::benchmark {
namespace {

using namespace std::chrono_literals;
using rendezvous::Service;

/// A directory for the key's file.
class Directory {
 public:
  Directory() { require(::mkdtemp(path_.data()) != nullptr, "no temporary directory"); }
  ~Directory() {
    ::unlink(key_file().c_str());
    ::rmdir(path_.c_str());
  }
  std::string key_file() const { return path_ + "/key"; }

 private:
  std::string path_ = "/tmp/runjob-benchmark-XXXXXX";
};

/// Runs the service behind its TCP front until SIGTERM. Stores its port in `port`.
[[noreturn]] void run_head(Size size, const std::string& key_file, std::atomic<int>& port) {
  const Allocation allocation =
      allocate(parse_host_list(fmt::format("node[0001-{:04}]:{}", size.hosts, size.ranks_per_host)), {});
  std::vector<rendezvous::Member> members;
  for (const Placement& placement : allocation.placements)
    members.push_back({allocation.hosts[static_cast<std::size_t>(placement.host)].name});
  const std::string topology = rendezvous::to_json(topology_of(allocation));
  Service service(std::move(members), 60s, [&](int rank) {
    return rendezvous::join_reply(rank_place(allocation, allocation.placements[static_cast<std::size_t>(rank)], 60s),
                                  topology);
  });
  boost::asio::io_context context(1);
  boost::asio::signal_set end(context, SIGTERM);
  end.async_wait([&](auto, int) { context.stop(); });
  rendezvous::HttpServer::Limits limits;
  limits.connections = static_cast<std::size_t>(size.ranks()) + 64;
  const rendezvous::HttpServer server(
      context.get_executor(), rendezvous::HttpServer::TcpAddress{"127.0.0.1", 0},
      rendezvous::JobKey::read_file(key_file),
      [&](rendezvous::Request request, rendezvous::Reply reply) {
        service.handle(std::move(request), std::chrono::steady_clock::now(), std::move(reply));
      },
      limits);
  port = server.port();
  port.notify_all();
  context.run();
  ::_exit(0);
}

/// One rank: from the start signal to the end of the gather, if it is its host's leader.
void run_rank(int rank, Size size, const std::string& address, const std::string& key_file, std::barrier<>& start,
              Measurement& last) {
  static std::atomic<int> joined{0}, passed{0}, gathered{0};
  const auto count = [](std::atomic<int>& counter, int all, double& time) {
    if (counter.fetch_add(1) + 1 == all) time = now_seconds();
  };
  start.arrive_and_wait();
  rendezvous::Client client(address, rank, key_file);
  require(client.join(60s).size == size.ranks(), "a join's answer is of another job");
  count(joined, size.ranks(), last.joined);
  client.barrier("start", 60s);
  count(passed, size.ranks(), last.barrier_passed);
  if (rank % size.ranks_per_host != 0) return;
  const auto blobs =
      client.gather("leaders", std::string(kBlobBytes, 'x'), size.hosts, rank / size.ranks_per_host, 60s);
  require(std::ssize(blobs) == size.hosts, "a gather is not whole");
  count(gathered, size.hosts, last.gathered);
}

void run_ranks(Size size, int port, const std::string& key_file, Measurement& measurement) {
  const std::string address = fmt::format("http://127.0.0.1:{}", port);
  std::barrier<> start(size.ranks() + 1);
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < size.ranks(); ++rank)
    ranks.emplace_back([&, rank] { run_rank(rank, size, address, key_file, start, measurement); });
  const double began = now_seconds();
  start.arrive_and_wait();
  for (std::thread& rank : ranks) rank.join();
  for (double* time : {&measurement.joined, &measurement.barrier_passed, &measurement.gathered}) *time -= began;
}

}  // namespace

Measurement measure_direct(Size size) {
  const Directory directory;
  rendezvous::JobKey::random().write_file(directory.key_file());
  void* memory = ::mmap(nullptr, sizeof(std::atomic<int>), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  require(memory != MAP_FAILED, "no memory");
  auto* port = new (memory) std::atomic<int>(0);
  const pid_t head = ::fork();
  require(head >= 0, "no process");
  if (head == 0) run_head(size, directory.key_file(), *port);
  while (*port == 0) std::this_thread::sleep_for(1ms);
  Measurement measurement;
  run_ranks(size, *port, directory.key_file(), measurement);
  ::kill(head, SIGTERM);
  int status = 0;
  rusage usage{};
  require(::wait4(head, &status, 0, &usage) == head && status == 0, "the head failed");
  measurement.head_cpu_seconds = static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                                 1e-6 * static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
  measurement.head_peak_mb = static_cast<double>(usage.ru_maxrss) / 1024;
  ::munmap(memory, sizeof(std::atomic<int>));
  return measurement;
}

}  // namespace runjob::benchmark
