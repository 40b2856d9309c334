#include "runtime/collectives/shm/shm_backend.hpp"

#include "runtime/collectives/shm/memory/sharing.hpp"
#include "tests/catch.hpp"
#include "tests/runtime/collectives/connected_ranks.hpp"

using namespace runjob::runtime;
using runjob::Errc;
using runjob::Status;

namespace {

constexpr std::chrono::seconds kLong{60};

std::unique_ptr<ShmBackend> make(int rank, int size, std::chrono::milliseconds timeout = kLong,
                                 const std::string& directory = "") {
  return std::make_unique<ShmBackend>(MeshOptions{rank, size, "", kLong, timeout}, directory);
}

std::vector<std::unique_ptr<ShmBackend>> connected(int size, std::chrono::milliseconds timeout = kLong) {
  return connected_ranks(size, [&](int rank) { return make(rank, size, timeout); });
}

}  // namespace

TEST_CASE("shared memory: calls run in their order", "[runtime][net]") {
  auto ranks = connected(2);
  std::vector<float> a(10, 1), b(100000, 2), c(10, 3), d(100000, 4);
  auto one = start(*ranks[0], sum(a));
  CHECK(ranks[1]->run(sum(c)).ok());
  CHECK(one.get().ok());
  auto two = start(*ranks[0], sum(b));
  CHECK(ranks[1]->run(sum(d)).ok());
  CHECK(two.get().ok());
  CHECK(a.back() == 4);
  CHECK(d.back() == 6);
}

TEST_CASE("shared memory: many ranks for few processors agree on what they use of it", "[runtime][net]") {
  constexpr int kSize = 9;
  auto ranks = connected(kSize);
  std::vector<std::vector<float>> values(kSize, std::vector<float>(300000, 1));
  std::vector<std::future<Status>> statuses;
  for (int rank = 0; rank < kSize; ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    statuses.push_back(start(*ranks[at], sum(values[at])));
  }
  for (auto& status : statuses) CHECK(status.get().message().empty());
  for (const auto& sums : values) CHECK(sums == std::vector<float>(300000, kSize));
}

TEST_CASE("shared memory: an abort ends what runs and what follows with the reason, and no other job",
          "[runtime][net]") {
  auto aborted = connected(2), untouched = connected(2);
  std::vector<float> a(10, 1), b(10, 1), c(10, 1), d(10, 1);
  auto blocked = start(*aborted[0], sum(a));
  auto waiting = start(*untouched[0], sum(c));
  aborted[0]->abort(Status(Errc::kPeerLost, "rank 1 is gone"));
  CHECK(blocked.get().message() == "rank 1 is gone");
  CHECK(aborted[0]->run(sum(b)).message() == "rank 1 is gone");
  static_cast<void>(aborted[1]->run(sum(a)));  // rank 0 may have given its part of this one
  CHECK(aborted[1]->run(sum(b)).message() == "shared memory, allreduce: rank 0 ended the exchange");
  CHECK(untouched[1]->run(sum(d)).ok());
  CHECK(waiting.get().ok());
}

TEST_CASE("shared memory: a silent peer is a timeout that names it, after which every call fails", "[runtime][net]") {
  auto ranks = connected(3, std::chrono::milliseconds(20));
  std::vector<float> values(GENERATE(10u, 100000u), 1);
  const Status status = ranks[0]->run(sum(values));
  CHECK(status.code() == Errc::kTimeout);
  CHECK_THAT(status.message(), ContainsSubstring("shared memory, allreduce: waited 0.02 s for rank "));
  CHECK(ranks[0]->run(sum(values)).message() == status.message());
}

TEST_CASE("shared memory: a backend that is closed ends the others' calls", "[runtime][net]") {
  auto ranks = connected(2);
  std::vector<float> values(100000, 1);
  auto blocked = start(*ranks[0], sum(values));
  ranks[1].reset();
  CHECK(blocked.get().message() == "shared memory, allreduce: rank 1 has left");
}

TEST_CASE("shared memory: an abort ends the waiting for a rank that does not connect", "[runtime][net]") {
  const auto zero = make(0, 2), one = make(1, 2);
  const std::vector<std::string> addresses{zero->address(), one->address()};
  const int waiting = GENERATE(0, 1);  // rank 1 gets no answer: its connection is accepted by nobody
  ShmBackend& rank = waiting == 0 ? *zero : *one;
  auto status = std::async(std::launch::async, [&] { return rank.connect(addresses); });
  rank.abort(Status(Errc::kPeerLost, "the other is gone"));
  CHECK(status.get().message() == "the other is gone");
}

TEST_CASE("shared memory: what fails after all have agreed names the remedy", "[runtime][net]") {
  const auto zero = make(0, 2), one = make(1, 2);
  const std::string cut = zero->address().substr(0, zero->address().size() - 1);
  const Status status = one->connect({cut, one->address()});
  CHECK(status.code() == Errc::kProtocol);
  CHECK_THAT(status.message(),
             ContainsSubstring("shared memory, while starting: the shared memory address of rank 0 is malformed"));
  CHECK_THAT(status.message(), ContainsSubstring("; RUNJOB_SHARED_MEMORY=0 does without"));
}

TEST_CASE("shared memory: a rank that cannot share says why", "[runtime][net]") {
  const auto refusing = make(0, 2, kLong, "/nonexistent");
  const auto objection = objection_to_sharing({refusing->address(), make(1, 2)->address()});
  REQUIRE(objection);
  CHECK_THAT(*objection, ContainsSubstring("rank 0: listening on /nonexistent/shm-"));
}
