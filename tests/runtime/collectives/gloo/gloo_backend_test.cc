#include "runtime/collectives/gloo/gloo_backend.hpp"

#include <thread>

#include "runtime/collectives/tcp/tcp_transport.hpp"
#include "tests/catch.hpp"
#include "tests/runtime/collectives/connected_ranks.hpp"

using namespace runjob::runtime;
using runjob::Errc;
using runjob::Status;

namespace {

std::unique_ptr<GlooBackend> make(const MeshOptions& options) {
  return std::make_unique<GlooBackend>(options, std::make_unique<TcpTransport>(all_pairs(options)));
}

std::vector<std::unique_ptr<GlooBackend>> mesh(int size, std::chrono::milliseconds timeout = std::chrono::seconds(30)) {
  return connected_ranks(size, [&](int rank) {
    return make({rank, size, "127.0.0.1", std::chrono::seconds(30), timeout});
  });
}

}  // namespace

TEST_CASE("calls run in their order and tell their stage", "[runtime][net]") {
  auto ranks = mesh(2);
  std::vector<float> a(10, 1), b(100000, 2);
  std::string stage;
  Call first = sum(a);
  first.on_stage = [&](const char* name, const char*) { stage = name; };
  std::vector<float> c(10, 3), d(100000, 4);
  auto one = start(*ranks[0], first);
  CHECK(ranks[1]->run(sum(c)).ok());
  CHECK(one.get().ok());
  auto two = start(*ranks[0], sum(b));
  CHECK(ranks[1]->run(sum(d)).ok());
  CHECK(two.get().ok());
  CHECK(a.back() == 4);
  CHECK(d.back() == 6);
  CHECK(stage == "GLOO_ALLREDUCE");
}

TEST_CASE("an abort ends a blocked collective and what follows with the reason, and no other mesh", "[runtime][net]") {
  auto aborted = mesh(2), untouched = mesh(2);
  std::vector<float> a(10, 1), b(10, 1), c(10, 1);
  auto blocked = start(*aborted[0], sum(a));
  auto waiting = start(*untouched[0], sum(c));
  aborted[0]->abort(Status(Errc::kPeerLost, "rank 1 is gone"));
  CHECK(blocked.get().message() == "rank 1 is gone");
  CHECK(aborted[0]->run(sum(b)).message() == "rank 1 is gone");
  std::vector<float> d(10, 1);
  CHECK(untouched[1]->run(sum(d)).ok());
  CHECK(waiting.get().ok());
}

TEST_CASE("an abort ends the waiting for a rank that does not connect", "[runtime][net]") {
  const auto rank = make({0, 2, "127.0.0.1", std::chrono::seconds(30), std::chrono::seconds(30)});
  const auto silent = make({1, 2, "127.0.0.1", std::chrono::seconds(30), std::chrono::seconds(30)});
  rank->abort(Status(Errc::kPeerLost, "rank 1 is gone"));
  CHECK(rank->connect({rank->address(), silent->address()}).message() == "rank 1 is gone");
}

TEST_CASE("a peer that goes away and one that is silent are told apart", "[runtime][net]") {
  std::vector<float> values(10, 1);
  SECTION("gone") {
    auto ranks = mesh(2);
    ranks[1].reset();
    const Status status = ranks[0]->run(sum(values));
    CHECK(status.code() == Errc::kPeerLost);
    CHECK_THAT(status.message(), ContainsSubstring("Gloo, allreduce: "));
  }
  SECTION("silent") {
    auto ranks = mesh(2, std::chrono::milliseconds(20));
    const Status status = ranks[0]->run(sum(values));
    INFO(status.message());
    CHECK(status.code() == Errc::kTimeout);
  }
}
