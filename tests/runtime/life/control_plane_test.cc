#include "runtime/life/control_plane.hpp"

#include <sys/socket.h>

#include "tests/catch.hpp"

using namespace runjob::runtime;
using runjob::Errc;
using runjob::Status;
using runjob::UniqueFd;

namespace {

/// Rank 0 and rank 1 in one thread.
struct Pair {
  std::unique_ptr<Coordinator> coordinator;
  std::unique_ptr<Member> member;

  explicit Pair(std::unique_ptr<TraceReceiver> trace = nullptr) {
    int ends[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    std::vector<ControlChannel> channels(1);
    channels.emplace_back(UniqueFd(ends[0]));
    coordinator =
        std::make_unique<Coordinator>(std::vector<std::string>{"a", "b"}, std::move(channels), std::move(trace));
    member = std::make_unique<Member>(ControlChannel(UniqueFd(ends[1])), "rank 0 on a");
  }
};

void turn(ControlPlane& plane, ControlPlane::Clock::time_point now = {}) {
  std::vector<pollfd> descriptors;
  plane.watch(descriptors);
  REQUIRE(::poll(descriptors.data(), descriptors.size(), 0) >= 0);
  plane.on_events(descriptors, now);
}

}  // namespace

TEST_CASE("coordinator and member receive the same decisions", "[runtime][net]") {
  Pair pair;
  pair.member->send({.type = LifeReport::Type::kGoodbye});
  turn(*pair.coordinator);
  turn(*pair.member);
  for (ControlPlane* plane :
       {static_cast<ControlPlane*>(pair.coordinator.get()), static_cast<ControlPlane*>(pair.member.get())}) {
    const auto decisions = plane->take();
    REQUIRE(decisions.size() == 1);
    CHECK(decisions[0].type == LifeDecision::Type::kLeaving);
    CHECK(decisions[0].status.message() == "rank 1 on b called shutdown()");
    CHECK(plane->messages_sent() == 1);
  }
  CHECK_FALSE(pair.coordinator->deadline());
}

TEST_CASE("a member that asks for the trace's clock is answered alone, and its records arrive", "[runtime][net]") {
  struct Trace : TraceReceiver {
    std::string& records;
    explicit Trace(std::string& kept) : records(kept) {}
    std::int64_t clock() const override { return 42; }
    void take_records(const std::string& whose, std::string text) override { records += whose + ": " + text; }
  };
  std::string records;
  Pair pair(std::make_unique<Trace>(records));
  pair.member->send({.type = LifeReport::Type::kClock, .asked = 7});
  pair.member->send({.type = LifeReport::Type::kTrace, .trace = "{}"});
  turn(*pair.coordinator);
  turn(*pair.member);
  CHECK(records == "rank 1 on b: {}");
  CHECK(pair.coordinator->take().empty());
  const auto decisions = pair.member->take();
  REQUIRE(decisions.size() == 1);
  CHECK(decisions[0].type == LifeDecision::Type::kClock);
  CHECK(decisions[0].asked == 7);
  CHECK(decisions[0].clock == 42);
}

TEST_CASE("a member learns that there is no trace", "[runtime][net]") {
  Pair pair;
  pair.member->send({.type = LifeReport::Type::kClock, .asked = 7});
  turn(*pair.coordinator);
  turn(*pair.member);
  CHECK(pair.member->take().at(0).clock == -1);
}

TEST_CASE("a member that vanishes is named, a coordinator that vanishes too", "[runtime][net]") {
  Pair pair;
  SECTION("member") {
    pair.member.reset();
    turn(*pair.coordinator);
    const auto decisions = pair.coordinator->take();
    CHECK(decisions.at(0).status.code() == Errc::kPeerLost);
    CHECK_THAT(decisions.at(0).status.message(), ContainsSubstring("rank 1 on b is gone"));
  }
  SECTION("coordinator") {
    pair.coordinator.reset();
    turn(*pair.member);
    const auto decisions = pair.member->take();
    CHECK(decisions.at(0).status.code() == Errc::kPeerLost);
    CHECK_THAT(decisions.at(0).status.message(), ContainsSubstring("rank 0 on a is gone"));
    turn(*pair.member);
    CHECK(pair.member->take().empty());
  }
}

TEST_CASE("a member that has reported a failure decides for itself when the coordinator does not answer",
          "[runtime][net]") {
  Pair pair;
  const ControlPlane::Clock::time_point start{};
  CHECK_FALSE(pair.member->deadline());
  pair.member->send({.type = LifeReport::Type::kFailed, .status = Status(Errc::kConnect, "the network is cut")});
  turn(*pair.member, start);
  CHECK(pair.member->deadline() == start + Member::kDecisionLimit);
  turn(*pair.member, start + Member::kDecisionLimit - std::chrono::milliseconds(1));
  CHECK(pair.member->take().empty());
  SECTION("no decision") {
    turn(*pair.member, start + Member::kDecisionLimit);
    const auto decisions = pair.member->take();
    REQUIRE(decisions.size() == 1);
    CHECK(decisions[0].type == LifeDecision::Type::kAbort);
    CHECK(decisions[0].status.code() == Errc::kConnect);
    CHECK(decisions[0].status.message() == "the network is cut; rank 0 on a does not answer");
    CHECK_FALSE(pair.member->deadline());
    turn(*pair.coordinator);  // reads the report
    turn(*pair.coordinator);  // and then the end of the connection
    CHECK_THAT(pair.coordinator->take().at(0).status.message(), ContainsSubstring("rank 1 on b is gone"));
  }
  SECTION("a decision in time") {
    turn(*pair.coordinator, start);
    turn(*pair.coordinator, start + Coordinator::kVerdictGrace);
    turn(*pair.member, start + Coordinator::kVerdictGrace);
    CHECK(pair.member->take().at(0).status.message() == "rank 1 on b: the network is cut");
    CHECK_FALSE(pair.member->deadline());
    turn(*pair.member, start + 2 * Member::kDecisionLimit);
    CHECK(pair.member->take().empty());
  }
}

TEST_CASE("a coordinator that leaves after the release is no loss", "[runtime][net]") {
  Pair pair;
  pair.coordinator->send({.type = LifeReport::Type::kGoodbye});
  pair.coordinator->send({.type = LifeReport::Type::kDrained});
  pair.member->send({.type = LifeReport::Type::kDrained});
  turn(*pair.coordinator);
  pair.coordinator.reset();
  turn(*pair.member);
  const auto decisions = pair.member->take();
  REQUIRE(decisions.size() == 2);
  CHECK(decisions[0].type == LifeDecision::Type::kLeaving);
  CHECK(decisions[1].type == LifeDecision::Type::kReleased);
}

TEST_CASE("a failure without a loss is decided when its time has come", "[runtime][net]") {
  Pair pair;
  const ControlPlane::Clock::time_point start{};
  pair.member->send({.type = LifeReport::Type::kFailed, .status = Status(Errc::kTimeout, "slow")});
  turn(*pair.coordinator, start);
  REQUIRE(pair.coordinator->deadline() == start + Coordinator::kVerdictGrace);
  turn(*pair.coordinator, start + Coordinator::kVerdictGrace / 2);
  CHECK(pair.coordinator->take().empty());
  turn(*pair.coordinator, start + Coordinator::kVerdictGrace);
  CHECK(pair.coordinator->take().at(0).status.message() == "rank 1 on b: slow");
  CHECK_FALSE(pair.coordinator->deadline());
}

TEST_CASE("bytes that are no message end the connection, not the process", "[runtime][net]") {
  int ends[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  std::vector<ControlChannel> channels(1);
  channels.emplace_back(UniqueFd(ends[0]));
  ControlChannel liar{UniqueFd(ends[1])};
  Coordinator coordinator({"a", "b"}, std::move(channels), nullptr);
  liar.send("nonsense");
  turn(coordinator);
  CHECK(coordinator.take().at(0).status.code() == Errc::kPeerLost);
}
