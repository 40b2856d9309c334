#include "runtime/negotiation/negotiation.hpp"

#include <map>
#include <random>
#include <set>

#include "base/error.hpp"
#include "tests/catch.hpp"

using namespace runjob::runtime;
using Catch::Matchers::EndsWith;
using runjob::Errc;
using Type = Decision::Type;

namespace {

const Signature kSum{.kind = Kind::kAllreduce, .dtype = DType::kFloat32, .shape = {2, 3}};

std::vector<std::string> hosts(int size) {
  std::vector<std::string> result;
  for (int rank = 0; rank < size; ++rank) result.push_back(rank < 2 ? "alpha" : "beta");
  return result;
}

Request request(const std::string& name, const Signature& signature = kSum) {
  return {name, signature};
}

/// What two ranks that submit `a` and `b` under one name are told.
Decision decide_pair(const Signature& a, const Signature& b) {
  Negotiation negotiation(hosts(2));
  negotiation.submit(0, request("x", a));
  negotiation.submit(1, request("x", b));
  const auto decisions = negotiation.take();
  REQUIRE(decisions.size() == 1);
  return decisions[0];
}

std::string disagreement(const Signature& a, const Signature& b) {
  const Decision decision = decide_pair(a, b);
  CHECK(decision.type == Type::kReject);
  CHECK(decision.status.code() == Errc::kMismatch);
  return decision.status.message();
}

}  // namespace

TEST_CASE("an operation runs once the last rank has submitted it", "[runtime][unit]") {
  Negotiation negotiation(hosts(3));
  negotiation.submit(2, request("x"));
  negotiation.submit(0, request("x"));
  CHECK(negotiation.take().empty());
  negotiation.submit(1, request("x"));
  const auto decisions = negotiation.take();
  REQUIRE(decisions.size() == 1);
  CHECK(decisions[0].type == Type::kExecute);
  CHECK(decisions[0].name == "x");
  CHECK(negotiation.take().empty());
}

TEST_CASE("a name may be used again at once, also by a rank that is ahead", "[runtime][unit]") {
  Negotiation negotiation(hosts(2));
  for (int round = 0; round < 3; ++round) {
    negotiation.submit(0, request("x"));
    negotiation.submit(1, request("x"));
    CHECK(negotiation.take().size() == 1);
  }
}

TEST_CASE("a mismatch names the tensor, the ranks, their hosts and both values", "[runtime][unit]") {
  Signature other = kSum;
  other.shape = {3, 2};
  CHECK(disagreement(kSum, other) ==
        "allreduce 'x': the ranks disagree on the shape: [2, 3] on rank 0 (alpha); [3, 2] on rank 1 (alpha)");
  other = kSum;
  other.dtype = DType::kInt8;
  CHECK_THAT(disagreement(kSum, other), ContainsSubstring("dtype: float32 on rank 0 (alpha); int8 on rank 1"));
  other = kSum;
  other.op = ReduceOp::kMax;
  CHECK_THAT(disagreement(kSum, other), ContainsSubstring("reduction: sum on rank 0 (alpha); max on rank 1"));
  other = kSum;
  other.postscale = 0.5;
  CHECK_THAT(disagreement(kSum, other), ContainsSubstring("prescale 1 and postscale 0.5 on rank 1"));
  other = kSum;
  other.kind = Kind::kBroadcast;
  CHECK_THAT(disagreement(kSum, other), ContainsSubstring("kind of operation: allreduce on rank 0 (alpha); broadcast"));
  Signature root1 = other;
  root1.root = 1;
  CHECK_THAT(disagreement(other, root1), ContainsSubstring("root: rank 0 on rank 0 (alpha); rank 1 on rank 1"));
}

TEST_CASE("an allgather's first extents may differ and are told to all, the others may not", "[runtime][unit]") {
  const Signature two{.kind = Kind::kAllgather, .shape = {2, 7}}, none{.kind = Kind::kAllgather, .shape = {0, 7}};
  const Decision decision = decide_pair(two, none);
  CHECK(decision.type == Type::kExecute);
  CHECK(decision.first_extents == std::vector<std::int64_t>{2, 0});
  const Signature narrow{.kind = Kind::kAllgather, .shape = {2, 6}}, flat{.kind = Kind::kAllgather, .shape = {2}};
  CHECK_THAT(disagreement(two, narrow), ContainsSubstring("shape: [*, 7] on rank 0 (alpha); [*, 6] on rank 1"));
  CHECK_THAT(disagreement(two, flat), ContainsSubstring("[*, 7] on rank 0 (alpha); [*] on rank 1"));
}

TEST_CASE("a gathered result that cannot exist is refused on all ranks", "[runtime][unit]") {
  const auto part = [](std::int64_t rows) {
    return Signature{.kind = Kind::kAllgather, .dtype = DType::kFloat64, .shape = {rows, 2}};
  };
  for (const std::int64_t rows : {std::int64_t{1} << 58, std::int64_t{1} << 62}) {
    const Decision decision = decide_pair(part(rows), part(rows));
    CHECK(decision.type == Type::kReject);
    CHECK(decision.status.code() == Errc::kInvalidArgument);
    CHECK_THAT(decision.status.message(), ContainsSubstring("allgather 'x': "));
    CHECK_THAT(decision.status.message(), ContainsSubstring("too many elements"));
  }
}

TEST_CASE("ranks with one value are listed together, and not endlessly", "[runtime][unit]") {
  Negotiation negotiation(hosts(12));
  Signature other = kSum;
  other.dtype = DType::kFloat64;
  for (int rank = 0; rank < 12; ++rank) negotiation.submit(rank, request("x", rank == 1 ? other : kSum));
  const std::string text = negotiation.take().at(0).status.message();
  CHECK_THAT(text, ContainsSubstring("float32 on ranks 0 (alpha), 2 (beta), 3 (beta)"));
  CHECK_THAT(text, ContainsSubstring(" and 3 more; float64 on rank 1 (alpha)"));
}

TEST_CASE("an operation that some ranks cannot run is refused on all, with their reasons", "[runtime][unit]") {
  const auto refusal = [](int size, std::set<int> unable, int joined = -1) {
    Negotiation negotiation(hosts(size));
    if (joined >= 0) negotiation.submit(joined, request("<join>", {.kind = Kind::kJoin}));
    for (int rank = 0; rank < size; ++rank) {
      Signature signature = kSum;
      if (unable.count(rank) != 0) signature.obstacle = runjob::Status(Errc::kUnavailable, "no GPU");
      if (rank != joined) negotiation.submit(rank, request("x", signature));
    }
    const auto decisions = negotiation.take();
    REQUIRE(decisions.size() == 1);
    CHECK(decisions[0].type == Type::kReject);
    CHECK(decisions[0].status.code() == Errc::kUnavailable);
    return decisions[0].status.message();
  };
  CHECK(refusal(3, {2}) == "allreduce 'x': rank 2 on beta cannot run it: no GPU");
  CHECK(refusal(3, {0, 2}, 1) ==
        "allreduce 'x': rank 0 on alpha cannot run it: no GPU; rank 2 on beta cannot run it: no GPU");
  CHECK_THAT(refusal(7, {1, 2, 3, 4, 5, 6}), EndsWith("; rank 4 on beta cannot run it: no GPU; and 2 more ranks"));
}

TEST_CASE("after a mismatch the name can be used again", "[runtime][unit]") {
  Negotiation negotiation(hosts(2));
  negotiation.submit(0, request("x"));
  negotiation.submit(1, request("x", {.kind = Kind::kBarrier}));
  CHECK(negotiation.take().at(0).type == Type::kReject);
  negotiation.submit(0, request("x"));
  negotiation.submit(1, request("x"));
  CHECK(negotiation.take().at(0).type == Type::kExecute);
}

TEST_CASE("roots are told as ranks of the job", "[runtime][unit]") {
  std::vector<Signature> signatures(2, {.kind = Kind::kBroadcast, .root = 0, .process_set = 4});
  signatures[1].root = 1;
  CHECK(mismatch("x", signatures, Members(4, {3, 5}, {"a", "b"})) ==
        "broadcast 'x' of process set 4: the ranks disagree on the root: rank 3 on rank 3 (a); rank 5 on rank 5 (b)");
}

TEST_CASE("one rank submitting a name twice is a protocol error, not a hang", "[runtime][unit]") {
  Negotiation negotiation(hosts(2));
  negotiation.submit(1, request("x"));
  CHECK_THROWS_WITH(negotiation.submit(1, request("x")), "rank 1 on alpha submitted 'x' twice");
}

TEST_CASE("random schedules: each operation is decided once, never early", "[runtime][unit]") {
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    const int size = 1 + static_cast<int>(random() % 5), names = 1 + static_cast<int>(random() % 20);
    std::vector<std::vector<int>> left(static_cast<std::size_t>(size));  // by rank, what it has still to submit
    for (auto& order : left) {
      for (int name = 0; name < names; ++name) order.push_back(name);
      std::shuffle(order.begin(), order.end(), random);
    }
    Negotiation negotiation(hosts(size));
    std::map<std::string, int> submitted, decided;
    for (int step = 0; step < size * names;) {
      const auto rank = random() % static_cast<unsigned>(size);
      if (left[rank].empty()) continue;
      const std::string name = std::to_string(left[rank].back());
      left[rank].pop_back();
      negotiation.submit(static_cast<int>(rank), request(name));
      ++submitted[name];
      ++step;
      for (const Decision& decision : negotiation.take()) {
        REQUIRE(decision.type == Type::kExecute);
        REQUIRE(submitted[decision.name] == size);
        REQUIRE(++decided[decision.name] == 1);
      }
    }
    REQUIRE(decided.size() == static_cast<std::size_t>(names));
  }
}

namespace {

const Signature kJoin{.kind = Kind::kJoin};

}  // namespace

TEST_CASE("a rank that has joined is not waited for by allreduces and barriers, and takes part in them",
          "[runtime][unit]") {
  Negotiation negotiation(hosts(3));
  negotiation.submit(0, request("early"));
  negotiation.submit(1, request("early"));
  negotiation.submit(0, request("later"));
  negotiation.submit(2, request("<join>", kJoin));
  auto decisions = negotiation.take();
  REQUIRE(decisions.size() == 1);
  CHECK(decisions[0].name == "early");
  REQUIRE(decisions[0].for_joined);
  CHECK(*decisions[0].for_joined == kSum);
  CHECK(negotiation.has_joined());
  negotiation.submit(1, request("later"));
  decisions = negotiation.take();
  REQUIRE(decisions.size() == 1);
  CHECK(decisions[0].name == "later");
  REQUIRE(decisions[0].for_joined);
  CHECK(*decisions[0].for_joined == kSum);
}

TEST_CASE("what was submitted before the join is this rank's own", "[runtime][unit]") {
  Negotiation negotiation(hosts(2));
  negotiation.submit(1, request("x"));
  negotiation.submit(1, request("<join>", kJoin));
  negotiation.submit(0, request("x"));
  const auto decisions = negotiation.take();
  REQUIRE(decisions.size() == 1);
  CHECK_FALSE(decisions[0].for_joined);
}

TEST_CASE("when all have joined, all are told who was last, and the next round begins", "[runtime][unit]") {
  Negotiation negotiation(hosts(3));
  for (int i = 0; i < 2; ++i) {
    for (const int rank : {2, 0, 1}) negotiation.submit(rank, request("<join>", kJoin));
    const auto decisions = negotiation.take();
    REQUIRE(decisions.size() == 1);
    CHECK(decisions[0].name == kJoinName);
    CHECK(decisions[0].first_extents == std::vector<std::int64_t>{1});
    CHECK_FALSE(negotiation.has_joined());
  }
  for (const int rank : {0, 1, 2}) CHECK_FALSE(negotiation.is_busy(rank));
}

TEST_CASE("what cannot go on without a rank that has joined is refused, naming it", "[runtime][unit]") {
  Negotiation negotiation(hosts(3));
  negotiation.submit(2, request("<join>", kJoin));
  for (const int rank : {0, 1}) {
    negotiation.submit(rank, request("g", {.kind = Kind::kAllgather, .dtype = DType::kFloat32, .shape = {1}}));
  }
  Signature other = kSum;
  other.dtype = DType::kInt32;
  negotiation.submit(0, request("x"));
  negotiation.submit(1, request("x", other));
  const auto decisions = negotiation.take();
  REQUIRE(decisions.size() == 2);
  CHECK(decisions[0].type == Type::kReject);
  CHECK(decisions[0].status.message() ==
        "allgather 'g': rank 2 on beta has joined, and only allreduce goes on without it");
  CHECK_THAT(decisions[1].status.message(), ContainsSubstring("the ranks disagree on the dtype"));
}

TEST_CASE("a second join of one rank ends the job", "[runtime][unit]") {
  Negotiation negotiation(hosts(2));
  negotiation.submit(1, request("<join>", kJoin));
  CHECK_THROWS_WITH(negotiation.submit(1, request("<join>", kJoin)), "rank 1 on alpha joined twice");
}

TEST_CASE("a group is decided as one, and its tensors are compared one by one", "[runtime][unit]") {
  Signature group{.kind = Kind::kAllreduce};
  group.group = {{DType::kFloat32, {2}}, {DType::kInt32, {3, 4}}};
  CHECK(decide_pair(group, group).type == Type::kExecute);
  Signature other = group;
  other.group[1].shape = {4, 3};
  CHECK(disagreement(group, other) ==
        "allreduce 'x_2of2': the ranks disagree on the shape: [3, 4] on rank 0 (alpha); [4, 3] on rank 1 (alpha)");
  other = group;
  other.group[0].dtype = DType::kInt32;
  CHECK_THAT(disagreement(group, other), ContainsSubstring("allreduce 'x_1of2': the ranks disagree on the dtype"));
  other = group;
  other.group.pop_back();
  CHECK_THAT(disagreement(group, other),
             ContainsSubstring("the number of tensors in the group: 2 on rank 0 (alpha); 1"));
  other = group;
  other.wire = DType::kFloat16;
  CHECK_THAT(disagreement(group, other),
             ContainsSubstring("the compression: none on rank 0 (alpha); compression to float16 on rank 1"));
}

TEST_CASE("of a gathered group each tensor has every rank's rows", "[runtime][unit]") {
  Signature a{.kind = Kind::kAllgather}, b = a;
  a.group = {{DType::kFloat32, {2, 5}}, {DType::kInt32, {3}}};
  b.group = {{DType::kFloat32, {7, 5}}, {DType::kInt32, {0}}};
  CHECK(decide_pair(a, b).first_extents == std::vector<std::int64_t>{2, 7, 3, 0});
  b.group[1].shape = {INT64_MAX};
  CHECK_THAT(decide_pair(a, b).status.message(), ContainsSubstring("allgather 'x_2of2'"));
}

TEST_CASE("a rank that has joined is missing in the operations of another process set", "[runtime][unit]") {
  Negotiation negotiation(hosts(2));
  Signature of_set = kSum;
  of_set.process_set = 5;
  negotiation.submit(0, request("of the job"));
  negotiation.submit(0, request("of the set", of_set));
  negotiation.submit(1, request("<join>", {.kind = Kind::kJoin}));
  const auto decisions = negotiation.take();
  REQUIRE(decisions.size() == 1);
  CHECK(decisions[0].name == "of the job");
  CHECK(negotiation.missing("of the set") == std::vector<int>{1});
  negotiation.submit(1, request("of the set", of_set));
  CHECK(negotiation.take().at(0).type == Type::kExecute);
}
