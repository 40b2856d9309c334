#include "rendezvous/server/service.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/catch.hpp"

using namespace runjob::rendezvous;
using namespace std::chrono_literals;

namespace {

constexpr auto kStart = Service::TimePoint() + 1h;

/// Where a reply ends up; fails the test when a second one comes.
using Outcome = std::shared_ptr<std::optional<Response>>;

Outcome ask(Service& service, const std::string& method, const std::string& target, int rank = -1,
            const std::string& body = "", Service::TimePoint now = kStart) {
  auto outcome = std::make_shared<std::optional<Response>>();
  service.handle({method, target, body, rank}, now, [outcome](Response response) {
    REQUIRE_FALSE(outcome->has_value());
    *outcome = std::move(response);
  });
  return outcome;
}

/// "404 the error's text", or "200 the body", or "no answer".
std::string text_of(const Outcome& outcome) {
  if (!outcome->has_value()) return "no answer";
  const Response& response = **outcome;
  return std::to_string(response.status) + " " + error_text(response.body);
}

std::vector<Member> members(int size) {
  return std::vector<Member>(static_cast<std::size_t>(size), Member{"s1"});
}

}  // namespace

TEST_CASE("a request that cannot be carried out is refused with the reason", "[unit]") {
  struct Case {
    const char* method;
    std::string target;
    int rank;
    std::string body;
    std::string expected;
  };
  const Case cases[] = {
      {"GET", "/v2/status", -1, "", "404 no such path: /v2/status"},
      {"GET", "/v1", -1, "", "404 no such path: /v1"},
      {"GET", "/v1/kv/scope", -1, "", "404 no such path: /v1/kv/scope"},
      {"GET", "/v1/kv/a/b/c", -1, "", "404 no such path: /v1/kv/a/b/c"},
      {"POST", "/v1/status", -1, "", "405 POST is not possible here, only GET"},
      {"GET", "/v1/gather/x", 0, "", "405 GET is not possible here, only POST"},
      {"PATCH", "/v1/kv/a/b", 0, "", "405 PATCH is not possible here, only GET, PUT and DELETE"},
      {"POST", "/v1/gather/x", 2, "", "400 rank 2 is not in this job of 2"},
      {"POST", "/v1/gather/x", -2, "", "400 rank -2 is not in this job of 2"},
      {"POST", "/v1/gather/x", -1, "", "400 expected the header Runjob-Rank, found none"},
      {"POST", "/v1/gather/x?index=0", -1, "", "400 expected the header Runjob-Rank, found none"},
      {"POST", "/v1/gather/x?count=3&index=0", 0, "", "400 count 3 is over the job's size of 2"},
      {"POST", "/v1/gather/x?count=1", 1, "", "400 index 1 is not below the count of 1"},
      {"POST", "/v1/gather/x?wait=never", 0, "",
       "400 wait: 'never' is not a time such as 30, 0.5, 500ms, 30s, 10m or 2h"},
      {"POST", "/v1/gather/", 0, "", "400 the path has an empty segment"},
      {"POST", "/v1/barrier/x", 0, "blob", "400 a barrier takes no body"},
      {"PUT", "/v1/kv/a/b", 0, std::string(kMaxBodyBytes + 1, 'x'),
       "413 a body of 16777217 bytes is over the limit of 16777216"},
      {"GET", "/v1/failing", 0, "", "405 GET is not possible here, only POST"},
      {"POST", "/v1/failing", -1, R"({"own":true,"reason":""})", "400 expected the header Runjob-Rank, found none"},
      {"POST", "/v1/failing", 0, R"({"own":true})",
       "400 a rank's report of its failure is malformed: reason is missing"},
      {"POST", "/v1/join", 0, R"({"rank":0,"pid":1})", "404 joins are answered by the agent on the rank's host"},
  };
  Service service(members(2), 30s);
  for (const Case& c : cases) {
    INFO(c.method << " " << c.target);
    CHECK(text_of(ask(service, c.method, c.target, c.rank, c.body)) == c.expected);
  }
}

TEST_CASE("a join is answered with the rank's place when the service knows it", "[unit]") {
  Service service(members(2), 30s, [](int rank) {
    Place place;
    place.rank = rank;
    place.size = 2;
    place.local_rank = rank;
    place.local_size = 2;
    return join_reply(place, to_json(Topology{{0, 0}, {"s1"}}));
  });
  const Outcome outcome = ask(service, "POST", "/v1/join", 1, R"({"rank":1,"pid":12})");
  REQUIRE(outcome->has_value());
  CHECK(join_reply_from_json((*outcome)->body).local_rank == 1);
  CHECK(service.overdue(kStart + 30s) == "rank 0 on s1: process not started");
  for (const char* bad : {"", "[]", "{}", R"({"rank":"1"})", R"({"rank":1.5})", "\xff"})
    CHECK_THAT(text_of(ask(service, "POST", "/v1/join", 1, bad)),
               ContainsSubstring("400 a rank's request to join is malformed: "));
  CHECK(text_of(ask(service, "POST", "/v1/join", 1, R"({"rank":2,"pid":1})")) == "400 rank 2 is not in this job of 2");
}

TEST_CASE("a gather answers all when the last has come, and its name is free again", "[unit]") {
  Service service(members(2), 30s);
  for (int round = 0; round < 100; ++round) {
    const Outcome first = ask(service, "POST", "/v1/gather/x", 1, "b" + std::to_string(round));
    CHECK(text_of(first) == "no answer");
    const Outcome last = ask(service, "POST", "/v1/gather/x", 0, "a" + std::to_string(round));
    REQUIRE(first->has_value());
    REQUIRE(last->has_value());
    CHECK((*first)->content_type == "application/cbor");
    CHECK(decode_blobs((*first)->body) ==
          std::vector<std::string>{"a" + std::to_string(round), "b" + std::to_string(round)});
    CHECK((*last)->body == (*first)->body);
  }
}

TEST_CASE("some ranks may gather among themselves with count and index", "[unit]") {
  Service service(members(4), 30s);
  const Outcome first = ask(service, "POST", "/v1/gather/x?count=2&index=0", 3, "three");
  const Outcome last = ask(service, "POST", "/v1/gather/x?count=2&index=1", 1, "one");
  REQUIRE(first->has_value());
  CHECK(decode_blobs((*last)->body) == std::vector<std::string>{"three", "one"});
}

TEST_CASE("a barrier holds all until the last has come", "[unit]") {
  Service service(members(2), 30s);
  const Outcome first = ask(service, "POST", "/v1/barrier/x", 1);
  CHECK(text_of(first) == "no answer");
  CHECK(text_of(ask(service, "POST", "/v1/barrier/x", 0)) == "200 ");
  CHECK(text_of(first) == "200 ");
}

TEST_CASE("a wait without a time takes the start timeout", "[unit]") {
  Service service(members(2), 30s);
  const Outcome outcome = ask(service, "POST", "/v1/barrier/x", 0);
  CHECK(service.next_deadline() == kStart + 30s);
  service.rank_started(1, 12, kStart);
  service.expire(kStart + 29s);
  CHECK(text_of(outcome) == "no answer");
  service.expire(kStart + 30s);
  CHECK(text_of(outcome) ==
        "408 barrier 'x' ran out of time after 30 s: rank 1 on s1 has not called init() for 30 s (pid 12)");
  CHECK(service.next_deadline() == Service::TimePoint::max());
}

TEST_CASE("a rank that has joined and does not come is said to have not reached the gather", "[unit]") {
  Service service(members(2), 30s);
  service.rank_joined(1, kStart);
  const Outcome outcome = ask(service, "POST", "/v1/gather/x?wait=5", 0);
  service.expire(kStart + 5s);
  CHECK(text_of(outcome) == "408 gather 'x' ran out of time after 5 s: rank 1 on s1 has not reached gather 'x'");
}

TEST_CASE("values live in scopes and can be waited for", "[unit]") {
  Service service(members(2), 30s);
  CHECK(text_of(ask(service, "GET", "/v1/kv/a/k")) == "404 no key 'k' in scope 'a'");
  const Outcome waiting = ask(service, "GET", "/v1/kv/a/k?wait=5");
  CHECK(text_of(ask(service, "PUT", "/v1/kv/b/k", -1, "other")) == "200 ");
  CHECK(text_of(waiting) == "no answer");
  CHECK(text_of(ask(service, "PUT", "/v1/kv/a/k", -1, "value")) == "200 ");
  CHECK(text_of(waiting) == "200 value");
  CHECK((*waiting)->content_type == "application/octet-stream");
  CHECK(text_of(ask(service, "DELETE", "/v1/kv/a/k")) == "200 ");
  const Outcome late = ask(service, "GET", "/v1/kv/a/k?wait=5");
  service.expire(kStart + 5s);
  CHECK(text_of(late) == "404 no key 'k' in scope 'a'");
}

TEST_CASE("the owner hears of a failing rank before that rank gets its answer", "[unit]") {
  Service service(members(2), 30s);
  CHECK(text_of(ask(service, "POST", "/v1/failing", 0, R"({"own":true,"reason":"x"})")) == "200 ");  // nobody listens
  std::string heard;
  service.on_failing([&](int rank, const Failing& failing) {
    heard += std::to_string(rank) + (failing.own ? " own " : " other ") + failing.reason;
  });
  CHECK(text_of(ask(service, "POST", "/v1/failing", 1, R"({"own":false,"reason":"rank 0 is gone"})")) == "200 ");
  CHECK(heard == "1 other rank 0 is gone");
}

TEST_CASE("closing ends every wait and refuses what comes later", "[unit]") {
  Service service(members(2), 30s);
  const Outcome gather = ask(service, "POST", "/v1/gather/x", 0, "a");
  const Outcome value = ask(service, "GET", "/v1/kv/a/k?wait=5");
  service.close("rank 1 on s1 failed with status 3");
  CHECK(text_of(gather) == "410 rank 1 on s1 failed with status 3");
  CHECK(text_of(value) == "410 rank 1 on s1 failed with status 3");
  CHECK(text_of(ask(service, "POST", "/v1/gather/x", 1, "b")) == "410 rank 1 on s1 failed with status 3");
  service.close("another reason");
  CHECK(text_of(ask(service, "GET", "/v1/status")) == "410 rank 1 on s1 failed with status 3");
  CHECK(service.next_deadline() == Service::TimePoint::max());
  CHECK(nlohmann::json::parse(service.status_json(kStart))["closed"] == "rank 1 on s1 failed with status 3");
}

TEST_CASE("a reply may ask the service again", "[unit]") {
  Service service(members(2), 30s);
  std::string seen;
  const auto next = [&](Response) { seen = text_of(ask(service, "POST", "/v1/gather/x", 0, "again")); };
  service.handle({"POST", "/v1/gather/x", "a", 0}, kStart, next);
  ask(service, "POST", "/v1/gather/x", 1, "b");
  CHECK(seen == "no answer");  // it opened the next round under the same name
  const Outcome second = ask(service, "POST", "/v1/gather/x", 1, "b2");
  CHECK(decode_blobs((*second)->body) == std::vector<std::string>{"again", "b2"});
}

TEST_CASE("the status says what the job waits for", "[unit]") {
  Service service(members(3), 30s);
  service.rank_started(0, 10, kStart);
  service.rank_joined(0, kStart);
  service.rank_started(1, 11, kStart);
  service.rank_exited(2, "status 1", kStart);
  ask(service, "POST", "/v1/gather/%ff", 0, "a");
  ask(service, "PUT", "/v1/kv/a/b", 0, "value");
  ask(service, "GET", "/v1/kv/a/c?wait=5", 0);
  const Outcome outcome = ask(service, "GET", "/v1/status", -1, "", kStart + 40s);
  const auto status = nlohmann::json::parse((*outcome)->body.str());
  CHECK(status["size"] == 3);
  CHECK(status["closed"].is_null());
  CHECK(status["ranks"]["joined"] == 1);
  CHECK(status["overdue"] ==
        "rank 1 on s1 has not called init() for 40 s (pid 11)\n"
        "rank 2 on s1 ended without calling init() (status 1)");
  CHECK(status["gathers"][0]["what"] == "gather '\xef\xbf\xbd'");
  CHECK(status["keys"] == 1);
  CHECK(status["waiting_for_keys"] == 1);
  CHECK(status["stored_bytes"] > 0);
}

TEST_CASE("ten thousand ranks gather and join in one service", "[unit]") {
  constexpr int kSize = 10000;
  Service service(members(kSize), 30s);
  int answered = 0;
  const std::string* shared = nullptr;
  bool same_bytes = true;
  for (int rank = 0; rank < kSize; ++rank) {
    service.rank_started(rank, rank, kStart);
    service.rank_joined(rank, kStart);
    service.handle({"POST", "/v1/gather/x", std::string(64, 'x'), rank}, kStart, [&](Response response) {
      ++answered;
      if (shared == nullptr) shared = &response.body.str();
      same_bytes = same_bytes && shared == &response.body.str();
    });
  }
  CHECK(answered == kSize);
  CHECK(same_bytes);
}
