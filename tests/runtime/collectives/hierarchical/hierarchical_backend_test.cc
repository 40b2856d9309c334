#include "runtime/collectives/hierarchical/hierarchical_backend.hpp"

#include <mutex>
#include <sched.h>

#include "base/error.hpp"
#include "runtime/collectives/gloo/gloo_backend.hpp"
#include "runtime/collectives/tcp/tcp_transport.hpp"
#include "tests/catch.hpp"
#include "tests/runtime/collectives/connected_ranks.hpp"

using namespace runjob::runtime;
using runjob::Errc;
using runjob::Status;

namespace {

constexpr std::chrono::seconds kLong{60};

std::unique_ptr<Transport> tcp(const TransportOptions& options) {
  return std::make_unique<TcpTransport>(options);
}

std::unique_ptr<DataBackend> gloo_mesh(const MeshOptions& options) {
  return std::make_unique<GlooBackend>(options, tcp(all_pairs(options)));
}

std::unique_ptr<DataBackend> groups_of_one(MeshOptions options) {
  options.groups.clear();
  for (int rank = 0; rank < options.size; ++rank) options.groups.push_back(rank);
  return std::make_unique<HierarchicalBackend>(options, "", HostParts{tcp, {}}, HierarchicalOptions{.rounds = false});
}

using Ranks = std::vector<std::unique_ptr<HierarchicalBackend>>;

MeshOptions options_for(const std::vector<int>& hosts, std::chrono::milliseconds timeout = kLong) {
  MeshOptions options{0, static_cast<int>(hosts.size()), "127.0.0.1", kLong, timeout};
  options.hosts = hosts;
  return options;
}

/// Ranks on hosts that are none.
Ranks connected(MeshOptions options, const HostParts& parts, HierarchicalOptions hierarchical = {}) {
  return connected_ranks(options.size, [&](int rank) {
    options.rank = rank;
    return std::make_unique<HierarchicalBackend>(options, "", parts, hierarchical);
  });
}

/// The same with TCP between them.
Ranks connected(MeshOptions options, HierarchicalOptions hierarchical = {}, bool with_gloo = true) {
  const HostParts parts =
      with_gloo ? HostParts{tcp, gloo_mesh} : HostParts{tcp, [](const MeshOptions& of) { return groups_of_one(of); }};
  return connected(std::move(options), parts, hierarchical);
}

/// Notes how long it may spin.
class SpinningTransport : public TcpTransport {
 public:
  SpinningTransport(const TransportOptions& options, std::vector<std::chrono::microseconds>& spins)
      : TcpTransport(options), spins_(spins) {}
  void spin_for(std::chrono::microseconds most) override {
    const std::lock_guard lock(mutex_);
    spins_.push_back(most);
  }

 private:
  static inline std::mutex mutex_;
  std::vector<std::chrono::microseconds>& spins_;
};

/// This thread and those that it starts may run on one processor only.
class OneProcessor {
 public:
  OneProcessor() {
    ::sched_getaffinity(0, sizeof before_, &before_);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<std::size_t>(::sched_getcpu()), &one);
    ::sched_setaffinity(0, sizeof one, &one);
  }
  ~OneProcessor() { ::sched_setaffinity(0, sizeof before_, &before_); }

 private:
  cpu_set_t before_;
};

}  // namespace

TEST_CASE("hosts: every collective over shared memory and TCP, or among all ranks alike", "[runtime][net]") {
  MeshOptions options = options_for(
      GENERATE(std::vector<int>{0, 0, 1, 1}, std::vector<int>{0, 1, 1, 2}, std::vector<int>{0, 1, 2, 3, 4}));
  if (options.hosts == std::vector<int>{0, 0, 1, 1})  // with and without ranks of a host that share no memory
    options.groups = GENERATE(std::vector<int>{}, std::vector<int>{0, 0, 1, 2}, std::vector<int>{0, 1, 2, 3});
  HierarchicalOptions hierarchical;
  hierarchical.allreduce = GENERATE(true, false);
  hierarchical.allgather = hierarchical.allreduce || options.size == 4;
  const bool with_gloo = hierarchical.allreduce || GENERATE(true, false);
  const Ranks ranks = connected(options, hierarchical, with_gloo);
  const auto size = static_cast<std::size_t>(options.size);
  const bool is_measured = hierarchical.allreduce || hierarchical.allgather;
  for (const auto& rank : ranks) CHECK((!is_measured || rank->costs() == ranks[0]->costs()));
  for (const std::size_t count : {1u, 1000u, 300000u}) {
    std::vector<std::vector<float>> sums(size), copies(size), all(size), parts(size), swapped(size);
    std::vector<std::future<void>> running;
    for (std::size_t rank = 0; rank < size; ++rank) {
      running.push_back(std::async(std::launch::async, [&, rank] {
        Backend& backend = *ranks[rank];
        const auto own = static_cast<float>(rank + 1);
        const std::vector<std::size_t> even(size, count);
        sums[rank].assign(count, own);
        backend.run(sum(sums[rank])).throw_if_failed();
        copies[rank].assign(count, own);
        backend
            .run({.kind = Kind::kBroadcast,
                  .dtype = DType::kFloat32,
                  .root = 1,
                  .output = copies[rank].data(),
                  .count = count})
            .throw_if_failed();
        const std::vector<float> one(count, own), many(size * count, own);
        all[rank].resize(size * count);
        Call call{.kind = Kind::kAllgather, .dtype = DType::kFloat32, .input = one.data(), .output = all[rank].data()};
        call.count = count;
        call.counts = even;
        backend.run(call).throw_if_failed();
        parts[rank].resize(count);
        call.kind = Kind::kReducescatter;
        call.input = many.data();
        call.output = parts[rank].data();
        call.count = size * count;
        backend.run(call).throw_if_failed();
        swapped[rank].resize(size * count);
        call.kind = Kind::kAlltoall;
        call.output = swapped[rank].data();
        call.send_counts = even;
        call.largest_part = count;
        backend.run(call).throw_if_failed();
      }));
    }
    for (auto& future : running) REQUIRE_NOTHROW(future.get());
    std::vector<float> expected;
    for (std::size_t rank = 0; rank < size; ++rank)
      expected.insert(expected.end(), count, static_cast<float>(rank + 1));
    const float total = static_cast<float>(size * (size + 1)) / 2;
    for (std::size_t rank = 0; rank < size; ++rank) {
      CHECK(sums[rank] == std::vector<float>(count, total));
      CHECK(copies[rank] == std::vector<float>(count, 2));
      CHECK(parts[rank] == std::vector<float>(count, total));
      CHECK(all[rank] == expected);
      CHECK(swapped[rank] == expected);
    }
  }
}

TEST_CASE("hosts: an abort ends what runs and what follows", "[runtime][net]") {
  const std::size_t count = GENERATE(10u, 300000u);
  Ranks ranks = connected(options_for({0, 0, 1, 1}));
  std::vector<std::vector<float>> values(4, std::vector<float>(count, 1));
  std::vector<std::future<Status>> running;
  for (const std::size_t rank : {0u, 2u, 3u}) running.push_back(start(*ranks[rank], sum(values[rank])));
  for (const std::size_t rank : {0u, 2u, 3u}) ranks[rank]->abort(Status(Errc::kPeerLost, "rank 1 is gone"));
  // Who meets a rank that has ended before its own abort says that instead.
  for (auto& status : running) CHECK_THAT(status.get().message(), ContainsSubstring("rank "));
  CHECK(ranks[0]->run(sum(values[0])).message() == "rank 1 is gone");
  const Status late = ranks[1]->run(sum(values[1]));
  CHECK_THAT(late.message(), ContainsSubstring("between hosts, allreduce: rank "));
}

TEST_CASE("hosts: an abort on one host ends the leaders that wait for it, and their hosts", "[runtime][net]") {
  const std::size_t count = GENERATE(10u, 300000u);
  Ranks ranks = connected(options_for({0, 1, 1}));
  std::vector<std::vector<float>> values(3, std::vector<float>(count, 1));
  std::vector<std::future<Status>> running;
  for (const std::size_t rank : {1u, 2u}) running.push_back(start(*ranks[rank], sum(values[rank])));
  ranks[0]->abort(Status(Errc::kAborted, "enough"));
  CHECK_THAT(running[0].get().message(), ContainsSubstring("between hosts, allreduce: rank 0 at 127.0.0.1: "));
  CHECK(running[1].get().message() == "between hosts, allreduce: rank 1 ended the exchange");
}

TEST_CASE("hosts: a rank that goes ends the others' calls", "[runtime][net]") {
  const std::size_t count = GENERATE(10u, 300000u);
  Ranks ranks = connected(options_for({0, 0, 1, 2}));
  std::vector<std::vector<float>> values(4, std::vector<float>(count, 1));
  std::vector<std::future<Status>> running;
  for (const std::size_t rank : {0u, 1u, 3u}) running.push_back(start(*ranks[rank], sum(values[rank])));
  ranks[2].reset();
  for (auto& status : running) CHECK_FALSE(status.get().ok());
}

TEST_CASE("hosts: a rank that has its processor to itself may spin for other hosts, and ranks that share one may not",
          "[runtime][net]") {
  const OneProcessor processor;
  std::vector<std::chrono::microseconds> spins;
  const HostParts parts{
      [&](const TransportOptions& options) { return std::make_unique<SpinningTransport>(options, spins); }, {}};
  SECTION("one rank on each host") {
    connected(options_for({0, 1}), parts);
    CHECK(spins == std::vector(2, std::chrono::microseconds(50)));
  }
  SECTION("two ranks on each host") {
    connected(options_for({0, 0, 1, 1}), parts);
    CHECK(spins == std::vector(4, std::chrono::microseconds(0)));
  }
}

TEST_CASE("hosts: a silent rank is a timeout that names it", "[runtime][net]") {
  Ranks ranks = connected(options_for({0, 1, 1}, std::chrono::seconds(1)));
  std::vector<float> values(GENERATE(10u, 300000u), 1);
  const Status status = ranks[0]->run(sum(values));
  INFO(status.message());
  CHECK(status.code() == Errc::kTimeout);
  CHECK_THAT(status.message(), ContainsSubstring("rank 1"));
  CHECK(ranks[0]->run(sum(values)).message() == status.message());
}

TEST_CASE("hosts: an abort ends the waiting for ranks that do not connect", "[runtime][net]") {
  MeshOptions options = options_for(GENERATE(std::vector<int>{0, 0, 1}, std::vector<int>{0, 1, 1}));
  const HostParts parts{tcp, gloo_mesh};
  Ranks ranks;
  std::vector<std::string> addresses;
  for (options.rank = 0; options.rank < options.size; ++options.rank) {
    ranks.push_back(std::make_unique<HierarchicalBackend>(options, "", parts));
    addresses.push_back(ranks.back()->address());
  }
  auto status = std::async(std::launch::async, [&] { return ranks[0]->connect(addresses); });
  ranks[0]->abort(Status(Errc::kPeerLost, "rank 2 is gone"));
  CHECK(status.get().message() == "rank 2 is gone");
}
