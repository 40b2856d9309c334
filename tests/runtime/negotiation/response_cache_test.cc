#include "runtime/negotiation/response_cache.hpp"

#include "base/error.hpp"
#include "tests/catch.hpp"

using namespace runjob::runtime;

namespace {

const Signature kFloats{.kind = Kind::kAllreduce, .dtype = DType::kFloat32, .shape = {2, 3}};

Decision named(const std::string& name) {
  Decision decision;
  decision.name = name;
  return decision;
}

/// Rank 0's cache of a job of two ranks.
struct Cache : ResponseCache {
  explicit Cache(std::size_t capacity = 16) : ResponseCache(0, 2, capacity) {}

  Id learn(const std::string& name, const Signature& own = kFloats, const Signature& other = kFloats) {
    remember(named(name), {own, other});
    return find(name).value();
  }
};

}  // namespace

TEST_CASE("the cache finds an operation by its name and this rank's signature", "[runtime][unit]") {
  Cache cache;
  Signature ints = kFloats;
  ints.dtype = DType::kInt32;
  const auto id = cache.learn("x");
  CHECK(cache.contains(id));
  CHECK(cache.name(id) == "x");
  CHECK(cache.find("x") == id);
  CHECK(cache.find("x", kFloats) == id);
  CHECK_FALSE(cache.find("x", ints));
  CHECK_FALSE(cache.find("y"));
  CHECK_FALSE(cache.contains(id + 1));
  CHECK(cache.largest_input(id) == 24);
  CHECK(cache.reduced_bytes(id) == 24);
  CHECK(cache.is_plain_allreduce(id));
  CHECK(cache.own_message(id).bytes == 24);
}

TEST_CASE("ranks may have signatures of their own", "[runtime][unit]") {
  Cache cache;
  const Signature three{.kind = Kind::kAllgather, .dtype = DType::kFloat32, .shape = {3}};
  const Signature five{.kind = Kind::kAllgather, .dtype = DType::kFloat32, .shape = {5}};
  Decision decision = named("g");
  decision.first_extents = {3, 5};
  cache.remember(decision, {three, five});
  const auto id = cache.find("g").value();
  CHECK(cache.signature_of(id, 0) == three);
  CHECK(cache.signature_of(id, 1) == five);
  CHECK(cache.largest_input(id) == 20);
  CHECK_FALSE(cache.is_plain_allreduce(id));
}

TEST_CASE("the oldest operation that no rank has announced is forgotten", "[runtime][unit]") {
  Cache cache(2);
  const auto a = cache.learn("a"), b = cache.learn("b");
  cache.touch(a);
  CHECK(cache.remember(named("c"), {kFloats, kFloats}) == b);
  CHECK(cache.find("a"));
  CHECK_FALSE(cache.find("b"));
  CHECK_FALSE(cache.announce(a, 1, false));
  CHECK_FALSE(cache.announce(*cache.find("c"), 1, false));
  CHECK_FALSE(cache.remember(named("d"), {kFloats, kFloats}));  // there is no room
  CHECK_FALSE(cache.find("d"));
}

TEST_CASE("a cache without room remembers nothing, and none remembers a name twice", "[runtime][unit]") {
  Cache none(0), cache;
  CHECK_FALSE(none.remember(named("x"), {kFloats, kFloats}));
  CHECK_FALSE(none.find("x"));
  const auto id = cache.learn("x");
  CHECK_FALSE(cache.remember(named("x"), {kFloats, kFloats}));
  CHECK(cache.find("x") == id);
}

TEST_CASE("an id is agreed on when all ranks have announced it", "[runtime][unit]") {
  Cache cache;
  const auto id = cache.learn("x");
  CHECK_FALSE(cache.is_announced(id));
  CHECK_FALSE(cache.announce(id, 1, true));
  CHECK(cache.is_announced(id));
  CHECK(cache.announced() == std::vector{id});
  CHECK(cache.missing(id) == std::vector{0});
  CHECK(cache.outstanding(1) == 1);
  CHECK(cache.outstanding(0) == 0);
  CHECK_THROWS_AS(cache.announce(id, 1, false), runjob::Error);
  CHECK(cache.announce(id, 0, false) == true);  // one of them begins something
  CHECK_FALSE(cache.is_announced(id));
  CHECK(cache.outstanding(1) == 0);
  CHECK_FALSE(cache.announce(id, 0, false));
  CHECK(cache.announce(id, 1, false) == false);
}

TEST_CASE("announcements that are withdrawn do not count", "[runtime][unit]") {
  Cache cache;
  const auto id = cache.learn("x");
  CHECK(cache.withdraw(id).empty());
  CHECK_FALSE(cache.announce(id, 1, true));
  CHECK(cache.withdraw(id) == std::vector{1});
  CHECK(cache.outstanding(1) == 0);
  CHECK_FALSE(cache.announce(id, 0, false));
  CHECK(cache.announce(id, 1, false) == false);
}

TEST_CASE("a forgotten id is given to another operation", "[runtime][unit]") {
  Cache cache;
  const auto id = cache.learn("x");
  cache.forget(id);
  CHECK_FALSE(cache.contains(id));
  CHECK_FALSE(cache.find("x"));
  CHECK(cache.learn("y") == id);
  CHECK_FALSE(cache.find("x"));
}

TEST_CASE("the hash of an operation is the same on all ranks, and of another operation another one",
          "[runtime][unit]") {
  const Signature three{.kind = Kind::kAllgather, .dtype = DType::kFloat32, .shape = {3}};
  const Signature five{.kind = Kind::kAllgather, .dtype = DType::kFloat32, .shape = {5}};
  Decision decision = named("g");
  decision.first_extents = {3, 5};
  ResponseCache zero(0, 2, 4), one(1, 2, 4);
  for (ResponseCache* cache : {&zero, &one}) cache->remember(decision, {three, five});
  CHECK(zero.hash_of(0) == one.hash_of(0));
  Cache cache;
  Signature ints = kFloats;
  ints.dtype = DType::kInt32;
  const auto x = cache.hash_of(cache.learn("x")), y = cache.hash_of(cache.learn("y"));
  Cache other;
  CHECK(x != y);
  CHECK(other.hash_of(other.learn("x", ints, ints)) != x);
}
