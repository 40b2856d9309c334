#include "runtime/messages/rank_messages.hpp"

#include <future>
#include <random>
#include <thread>

#include "base/error.hpp"
#include "tests/runtime/messages/connected_messages.hpp"

using namespace runjob::runtime;
using runjob::Errc;
using runjob::Error;
using runjob::Status;
using Pending = ConnectedMessages::Pending;

namespace {

std::string text_of(std::size_t bytes, int seed = 0) {
  std::string text(bytes, ' ');
  for (std::size_t i = 0; i < bytes; ++i)
    text[i] = static_cast<char>('a' + (i * 7 + i / 251 + static_cast<unsigned>(seed)) % 26);
  return text;
}

constexpr std::size_t kLong = 3'000'001;

}  // namespace

TEST_CASE("a message arrives with its sender and its length", "[runtime][net]") {
  auto job = ConnectedMessages::on_one_host(3);
  std::string room(10, '-');
  const Pending receive = job.receive(1, 2, room, 5), send = job.send(2, 1, "hello", 5);
  CHECK(job.wait(1, receive).ok());
  CHECK(job.wait(2, send).ok());
  CHECK(room == "hello-----");
  REQUIRE(receive->result().source);
  CHECK(receive->result().source->rank == 2);
  CHECK(receive->result().source->bytes == 5);
  CHECK_FALSE(send->result().source);
}

TEST_CASE("messages of any length arrive, on one host and between hosts, in clear and sealed", "[runtime][net]") {
  const auto options =
      GENERATE(ConnectedMessages::Options{{0, 0}, true, false}, ConnectedMessages::Options{{0, 0}, false, false},
               ConnectedMessages::Options{{0, 1}, true, false}, ConnectedMessages::Options{{0, 1}, true, true});
  ConnectedMessages job(options);
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, kMostEagerBytes, kMostEagerBytes + 1, kLong}) {
    const std::string text = text_of(bytes);
    std::string room(bytes, '-');
    const bool is_early = bytes % 2 == 1;
    Pending send = is_early ? job.send(0, 1, text) : nullptr;
    const Pending receive = job.receive(1, 0, room);
    if (!is_early) send = job.send(0, 1, text);
    INFO(bytes);
    CHECK(job.wait(1, receive).ok());
    CHECK(job.wait(0, send).ok());
    CHECK(room == text);
  }
}

TEST_CASE("messages of one tag keep their order, and those of others pass them", "[runtime][net]") {
  auto job = ConnectedMessages::on_one_host(2);
  const std::string first = text_of(kLong, 1), second = "second", other = "other";
  std::vector<Pending> sends{job.send(0, 1, first, 1), job.send(0, 1, second, 1), job.send(0, 1, other, 2)};
  std::string rooms[3] = {std::string(kLong, '-'), std::string(6, '-'), std::string(5, '-')};
  CHECK(job.wait(1, job.receive(1, 0, rooms[2], 2)).ok());
  const Pending a = job.receive(1, 0, rooms[0], 1), b = job.receive(1, 0, rooms[1], 1);
  CHECK(job.wait(1, b).ok());
  CHECK(job.wait(1, a).ok());
  for (const Pending& each : sends) CHECK(job.wait(0, each).ok());
  CHECK((rooms[0] == first && rooms[1] == second && rooms[2] == other));
}

TEST_CASE("a receive from any rank takes each message once", "[runtime][net]") {
  auto job = ConnectedMessages::on_one_host(4);
  std::string rooms[3];
  std::vector<Pending> receives, sends;
  const std::string texts[4] = {"", "from 1", text_of(kLong, 2), "from 3"};
  for (std::string& room : rooms)
    receives.push_back(job.receive(0, RankMessages::kAnyPeer, room = std::string(kLong, '-')));
  for (int rank = 1; rank < 4; ++rank) sends.push_back(job.send(rank, 0, texts[rank]));
  std::vector<int> seen;
  for (std::size_t i = 0; i < 3; ++i) {
    REQUIRE(job.wait(0, receives[i]).ok());
    const auto source = *receives[i]->result().source;
    seen.push_back(source.rank);
    CHECK(rooms[i].substr(0, static_cast<std::size_t>(source.bytes)) == texts[source.rank]);
  }
  std::sort(seen.begin(), seen.end());
  CHECK(seen == std::vector<int>{1, 2, 3});
  for (int rank = 1; rank < 4; ++rank) CHECK(job.wait(rank, sends[static_cast<std::size_t>(rank - 1)]).ok());
}

TEST_CASE("a rank sends messages to itself", "[runtime][net]") {
  auto job = ConnectedMessages::on_one_host(GENERATE(1, 2));
  const std::string text = text_of(kLong), small = "small";
  std::string room(kLong, '-'), small_room(5, '-');
  CHECK(job.wait(0, job.send(0, 0, small, 3)).ok());  // short ones do not wait
  const Pending send = job.send(0, 0, text, 4);
  CHECK_FALSE(job.is_over_soon(0, send));
  CHECK(job.wait(0, job.receive(0, 0, room, 4)).ok());
  CHECK(job.wait(0, send).ok());
  CHECK(job.wait(0, job.receive(0, RankMessages::kAnyPeer, small_room, 3)).ok());
  CHECK((room == text && small_room == small));
  std::string too_small(2, '-');
  const Pending receive = job.receive(0, 0, too_small);
  CHECK(job.wait(0, job.send(0, 0, "abc")).code() == Errc::kMismatch);
  CHECK(job.wait(0, receive).code() == Errc::kMismatch);
}

TEST_CASE("a message that is longer than its receive is an error on both ranks, and only that", "[runtime][net]") {
  auto job = ConnectedMessages::on_one_host(2);
  const std::string text = text_of(kLong), small = "12345678";
  std::string room(4, '-');
  const Pending send = job.send(0, 1, text, 9);
  CHECK(
      job.wait(1, job.receive(1, 0, room, 9)).message() ==
      "receive with tag 9 from rank 0 on host0: the message of rank 0 on host0 has 3000001 bytes, and the receive has "
      "room for 4");
  const Status refused = job.wait(0, send);
  CHECK(refused.code() == Errc::kMismatch);
  CHECK(refused.message() ==
        "the message with tag 9 to rank 1 on host0 has 3000001 bytes, and its receive has room for 4");

  CHECK(job.wait(0, job.send(0, 1, small, 9)).ok());  // its bytes have left
  CHECK(job.wait(1, job.receive(1, 0, room, 9)).code() == Errc::kMismatch);
  std::string answer(4, '-');
  CHECK(job.wait(0, job.receive(0, 1, answer, 9)).message() ==
        "the message with tag 9 to rank 1 on host0 has 8 bytes, and its receive has room for 4");
  CHECK(room == "----");

  const Pending again = job.send(0, 1, "abcd");
  CHECK(job.wait(1, job.receive(1, 0, room)).ok());
  CHECK(job.wait(0, again).ok());
  CHECK(room == "abcd");
}

TEST_CASE("messages that nobody receives take a limited memory", "[runtime][net]") {
  auto job = ConnectedMessages::on_one_host(2);
  const std::size_t count = 3 * kMostUntaken / 30'000;
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < count; ++i) texts.push_back(text_of(30'000, static_cast<int>(i)));
  std::vector<Pending> sends;
  std::string unrelated(1, '-');
  const Pending reading = job.receive(1, 0, unrelated, 77);  // rank 1 reads what comes
  for (const std::string& text : texts) sends.push_back(job.send(0, 1, text));
  CHECK(job.wait(0, sends.front()).ok());
  CHECK_FALSE(job.is_over_soon(0, sends.back()));
  for (const std::string& text : texts) {
    std::string room(text.size(), '-');
    REQUIRE(job.wait(1, job.receive(1, 0, room)).ok());
    CHECK(room == text);
  }
  for (const Pending& each : sends) CHECK(job.wait(0, each).ok());
  CHECK(job.wait(0, job.send(0, 1, "x", 77)).ok());
  CHECK(job.wait(1, reading).ok());
}

TEST_CASE("messages move while no thread waits", "[runtime][net]") {
  ConnectedMessages job({{0, GENERATE(0, 1)}});
  const std::string text = text_of(30'000'000);
  std::string room(text.size(), '-');
  const Pending send = job.send(0, 1, text), receive = job.receive(1, 0, room);
  while (!send->done() || !receive->done()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  CHECK(room == text);
}

TEST_CASE("two ranks that begin at once get one connection", "[runtime][net]") {
  for (int i = 0; i < 20; ++i) {
    auto job = ConnectedMessages::on_one_host(2);
    const auto exchange = [&job](int rank) {
      std::string room(3, '-');
      const Pending receive = job.receive(rank, 1 - rank, room);
      const Status sent = job.wait(rank, job.send(rank, 1 - rank, "abc"));
      const Status received = job.wait(rank, receive);
      return sent.ok() && received.ok() && room == "abc";
    };
    auto other = std::async(std::launch::async, exchange, 1);
    CHECK(exchange(0));
    CHECK(other.get());
  }
}

TEST_CASE("operations end when their peer leaves, with its reason, and others go on", "[runtime][net]") {
  auto job = ConnectedMessages::on_one_host(3);
  const Status why(Errc::kAborted, "rank 2 on host0 called shutdown()");
  std::string room(kLong, '-'), late(4, '-');
  const Pending receive = job.receive(0, 2, room), send = job.send(0, 2, room);
  CHECK(job.wait(2, job.send(2, 0, "last", 1)).ok());
  CHECK_FALSE(job.is_over_soon(0, receive));
  job.at(2).shutdown(why);
  const std::string text = job.wait(0, receive).message();
  CHECK_THAT(text,
             ContainsSubstring("rank 2 on host0 called shutdown() while rank 0 on host0 waits in receive with tag 0"));
  CHECK(job.wait(0, send).code() == Errc::kAborted);
  CHECK(job.wait(0, job.send(0, 2, "more")).code() == Errc::kAborted);
  CHECK(job.wait(0, job.receive(0, 2, late, 1)).ok());  // it had come before
  CHECK(late == "last");
  std::string other(5, '-');
  const Pending from_other = job.receive(0, 1, other);
  CHECK(job.wait(1, job.send(1, 0, "other")).ok());
  CHECK(job.wait(0, from_other).ok());
}

TEST_CASE("a receive from any rank ends when all others have left", "[runtime][net]") {
  auto job = ConnectedMessages::on_one_host(3);
  std::string room(1, '-');
  const Pending receive = job.receive(0, RankMessages::kAnyPeer, room);
  job.at(1).shutdown(Status(Errc::kAborted, "rank 1 on host0 called shutdown()"));  // it was never connected
  job.at(0).someone_leaves();
  CHECK_FALSE(job.is_over_soon(0, receive));
  job.at(2).shutdown(Status(Errc::kAborted, "rank 2 on host0 called shutdown()"));
  CHECK_FALSE(job.wait(0, receive).ok());
}

TEST_CASE("a lost rank is explained by the job, and otherwise by its connection", "[runtime][net]") {
  auto job = ConnectedMessages::on_one_host(3);
  std::string room(1, '-');
  for (const int rank : {0, 2}) {
    const Pending receive = job.receive(1, rank, room, rank);
    CHECK(job.wait(rank, job.send(rank, 1, "x", rank)).ok());
    CHECK(job.wait(1, receive).ok());
  }
  const Pending of_0 = job.receive(0, 1, room), of_2 = job.receive(2, 1, room);
  job.at(1).end(Status(Errc::kPeerLost, "lost"));  // no goodbye, as when a process is killed
  CHECK_FALSE(job.is_over_soon(0, of_0));
  job.at(0).end(Status(Errc::kPeerLost, "rank 1 on host0 was killed"));
  CHECK(job.wait(0, of_0).message() == "rank 1 on host0 was killed");
  CHECK(job.wait(0, job.receive(0, 2, room)).message() == "rank 1 on host0 was killed");
  job.at(2).nobody_explains();
  CHECK(job.wait(2, of_2).code() == Errc::kPeerLost);
  CHECK_THAT(job.wait(2, job.receive(2, 1, room)).message(),
             ContainsSubstring("rank 1 on host0: its process has closed"));
}

TEST_CASE("shutdown ends what is in flight, and gives buffers back in the middle of a message", "[runtime][net]") {
  ConnectedMessages job({{0, 1}});
  std::string text = text_of(50'000'000), room(text.size(), '-');
  const Pending send = job.send(0, 1, text), receive = job.receive(1, 0, room);
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  const Status why(Errc::kAborted, "rank 0 on host0 called shutdown()");
  job.at(0).shutdown(why);
  CHECK((send->done()));
  text.assign(text.size(), '!');
  const Status received = job.wait(1, receive);
  CHECK((!received.ok() || room == text_of(text.size())));
}

TEST_CASE("the end of a set ends its operations alone", "[runtime][net]") {
  auto job = ConnectedMessages::on_one_host(2);
  const MessageSet set{1, {1, 0}};
  job.at(0).begin_set(1);
  job.at(1).begin_set(1);
  std::string room(3, '-'), of_set(3, '-');
  const Pending in_job = job.receive(0, 1, room);
  const Pending in_set = job.at(0).receive(of_set.data(), 3, 0, 0, set);
  const Pending unmatched = job.at(0).send(text_of(kLong).data(), kLong, 0, 0, set);
  job.at(0).end_set(1, Status(Errc::kAborted, "process set 1 was removed"));
  CHECK(job.wait(0, in_set).message() == "process set 1 was removed");
  CHECK(job.wait(0, unmatched).message() == "process set 1 was removed");
  // A later set has nothing of the earlier one with its number.
  CHECK(job.wait(1, job.at(1).send("old", 3, 1, 0, set)).ok());
  job.at(1).end_set(1, Status(Errc::kAborted, "process set 1 was removed"));
  job.at(0).begin_set(1);
  job.at(1).begin_set(1);
  const Pending again = job.at(0).receive(of_set.data(), 3, 0, 0, set);
  CHECK(job.wait(1, job.at(1).send("new", 3, 1, 0, set)).ok());
  CHECK(job.wait(0, again).ok());
  CHECK(of_set == "new");
  CHECK(again->result().source->rank == 0);
  CHECK(job.wait(1, job.send(1, 0, "job")).ok());
  CHECK(job.wait(0, in_job).ok());
}

TEST_CASE("a rank that is not in the set is refused at once", "[runtime][net]") {
  auto job = ConnectedMessages::on_one_host(2);
  std::string room(1, '-');
  CHECK_THROWS_WITH(job.send(0, 2, "x", 3), "send with tag 3: process set 0 has 2 ranks, and no rank 2");
  CHECK_THROWS_WITH(job.send(0, RankMessages::kAnyPeer, "x"), ContainsSubstring("and no rank -1"));
  CHECK_THROWS_WITH(job.receive(0, -2, room), ContainsSubstring("and no rank -2"));
}

namespace {

struct Planned {
  int from, to;
  std::int64_t tag;
  int set;
  std::size_t bytes;
  int seed;
};

const MessageSet kSets[3] = {{0, {0, 1, 2, 3}}, {1, {3, 1, 0}}, {2, {1, 2, 3}}};

int index_in(const MessageSet& set, int rank) {
  const auto place = std::find(set.ranks.begin(), set.ranks.end(), rank);
  return place == set.ranks.end() ? -1 : static_cast<int>(place - set.ranks.begin());
}

std::vector<Planned> plan_of(unsigned seed) {
  std::mt19937 random(seed);
  const auto below = [&random](unsigned limit) { return static_cast<int>(random() % limit); };
  std::vector<Planned> plan;
  while (plan.size() < 150) {
    const int set = below(3);
    const MessageSet& of = kSets[set];
    const auto member = [&] {
      return of.ranks[static_cast<std::size_t>(below(static_cast<unsigned>(of.ranks.size())))];
    };
    const std::size_t bytes =
        below(4) == 0 ? static_cast<std::size_t>(below(400'000)) : static_cast<std::size_t>(below(3000));
    plan.push_back({member(), member(), below(3), set, bytes, below(1000)});
  }
  return plan;
}

/// One rank's part of a plan, in an order of its own: sends and receives are begun in the plan's order, and what is in
/// flight is waited for at random.
std::string run_plan(ConnectedMessages& job, int rank, const std::vector<Planned>& plan, unsigned seed) {
  struct Flight {
    Pending pending;
    std::unique_ptr<std::string> memory;
    const Planned* planned;
    bool is_send;
  };
  std::mt19937 random(seed + static_cast<unsigned>(rank));
  std::vector<Flight> flights;
  std::string failure;
  const auto end_one = [&](std::size_t index) {
    Flight flight = std::move(flights[index]);
    flights.erase(flights.begin() + static_cast<std::ptrdiff_t>(index));
    const Status status = job.wait(rank, flight.pending);
    if (!status.ok()) failure = status.message();
    if (!status.ok() || flight.is_send) return;
    // A receive from any rank may take another message of its tag and set.
    const auto source = *flight.pending->result().source;
    const int from = kSets[flight.planned->set].ranks[static_cast<std::size_t>(source.rank)];
    const std::string got = flight.memory->substr(0, static_cast<std::size_t>(source.bytes));
    const bool is_planned = std::any_of(plan.begin(), plan.end(), [&](const Planned& each) {
      return each.from == from && each.to == rank && each.tag == flight.planned->tag &&
             each.set == flight.planned->set && got == text_of(each.bytes, each.seed);
    });
    if (!is_planned) failure = "another message";
    if (flight.planned->tag != 2 &&
        (from != flight.planned->from || got != text_of(flight.planned->bytes, flight.planned->seed)))
      failure = "a message in another place";
  };
  for (const Planned& each : plan) {
    const MessageSet& set = kSets[each.set];
    if (each.to == rank) {
      auto room = std::make_unique<std::string>(400'000, '-');
      const int from = each.tag == 2 ? RankMessages::kAnyPeer : index_in(set, each.from);
      Pending pending = job.at(rank).receive(room->data(), room->size(), from, each.tag, set);
      flights.push_back({std::move(pending), std::move(room), &each, false});
    }
    if (each.from == rank) {
      auto text = std::make_unique<std::string>(text_of(each.bytes, each.seed));
      Pending pending = job.at(rank).send(text->data(), text->size(), index_in(set, each.to), each.tag, set);
      flights.push_back({std::move(pending), std::move(text), &each, true});
    }
    if (random() % 8 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 300));
  }
  while (!flights.empty()) end_one(random() % flights.size());
  return failure;
}

}  // namespace

TEST_CASE("random messages in overlapping sets all arrive", "[runtime][net]") {
  const auto options =
      GENERATE(ConnectedMessages::Options{{0, 0, 0, 0}}, ConnectedMessages::Options{{0, 0, 1, 1}, true, true});
  for (unsigned seed = 1; seed <= 3; ++seed) {
    ConnectedMessages job(options);
    const std::vector<Planned> plan = plan_of(seed);
    std::vector<std::future<std::string>> ranks;
    for (int rank = 0; rank < 4; ++rank)
      ranks.push_back(std::async(std::launch::async, [&, rank] { return run_plan(job, rank, plan, seed); }));
    INFO(seed);
    for (auto& each : ranks) CHECK(each.get().empty());
  }
}
