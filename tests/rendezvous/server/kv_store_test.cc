#include "rendezvous/server/kv_store.hpp"

#include "tests/catch.hpp"

using namespace runjob::rendezvous;
using namespace std::chrono_literals;

namespace {

constexpr auto kStart = KvStore::TimePoint() + 1h;
const KvStore::Name kName{"scope", "key"};

}  // namespace

TEST_CASE("a value is what was put last", "[unit]") {
  StoredBytes stored;
  KvStore store(stored);
  CHECK(store.put(kName, "old", nullptr).size() == 1);
  CHECK(store.put(kName, std::string("\0new", 4), nullptr).size() == 1);
  const Answers answers = store.get(kName, kStart, kStart, nullptr);
  REQUIRE(answers.size() == 1);
  CHECK(answers[0].response.body.str() == std::string("\0new", 4));
  CHECK(store.size() == 1);
  CHECK(store.remove(kName, nullptr)[0].response.status == 200);
  CHECK(store.remove(kName, nullptr)[0].response.status == 200);
  CHECK(stored.used() == 0);
}

TEST_CASE("a value that is not there is named", "[unit]") {
  StoredBytes stored;
  KvStore store(stored);
  const Answers answers = store.get(kName, kStart, kStart, nullptr);
  REQUIRE(answers.size() == 1);
  CHECK(answers[0].response.status == 404);
  CHECK(error_text(answers[0].response.body) == "no key 'key' in scope 'scope'");
}

TEST_CASE("all who wait for a value get it, others wait on", "[unit]") {
  StoredBytes stored;
  KvStore store(stored);
  CHECK(store.get(kName, kStart, kStart + 1s, nullptr).empty());
  CHECK(store.get(kName, kStart, kStart + 2s, nullptr).empty());
  CHECK(store.get({"scope", "other"}, kStart, kStart + 3s, nullptr).empty());
  CHECK(store.next_deadline() == kStart + 1s);
  const Answers answers = store.put(kName, "v", nullptr);
  REQUIRE(answers.size() == 3);
  CHECK(answers[0].response.body.str() == "v");
  CHECK(answers[1].response.body.str() == "v");
  CHECK(answers[2].response.body.empty());
  CHECK(store.waiting() == 1);
  CHECK(store.next_deadline() == kStart + 3s);
}

TEST_CASE("each wait for a value ends at its own time", "[unit]") {
  StoredBytes stored;
  KvStore store(stored);
  for (int second : {3, 1, 2}) CHECK(store.get(kName, kStart, kStart + std::chrono::seconds(second), nullptr).empty());
  CHECK(store.expire(kStart + 999ms).empty());
  const Answers answers = store.expire(kStart + 2s);
  REQUIRE(answers.size() == 2);
  CHECK(answers[0].response.status == 404);
  CHECK(store.next_deadline() == kStart + 3s);
  CHECK(store.close(error_response(410, "over")).size() == 1);
  CHECK(store.next_deadline() == KvStore::TimePoint::max());
  CHECK(stored.used() == 0);
}

TEST_CASE("what all values need is bounded, and a refused put leaves the old value", "[unit]") {
  StoredBytes stored;
  KvStore store(stored);
  CHECK(store.put(kName, "old", nullptr)[0].response.status == 200);
  int status = 200;
  for (int i = 0; status == 200 && i < 32; ++i)
    status = store.put({"fill", std::to_string(i)}, std::string(kMaxBodyBytes, 'x'), nullptr)[0].response.status;
  CHECK(status == 503);
  const Answers refused = store.put(kName, std::string(kMaxBodyBytes, 'y'), nullptr);
  CHECK(refused[0].response.status == 503);
  CHECK(error_text(refused[0].response.body) ==
        "key 'key' in scope 'scope': the rendezvous holds its limit of 268435456 bytes");
  CHECK(store.get(kName, kStart, kStart, nullptr)[0].response.body.str() == "old");
  CHECK(stored.used() <= kMaxStoredBytes);
}
