#include "runtime/links/handshake.hpp"

#include <sys/socket.h>

#include "runtime/links/link_stream.hpp"
#include "tests/catch.hpp"
#include "tests/core_dump.hpp"

using runjob::copies_in_core_dump;
using runjob::KeyExchange;
using runjob::masked;
using runjob::MaskedKey;
using runjob::Secret;
using namespace runjob::runtime;

namespace {

LinkKey key_of(unsigned char byte) {
  LinkKey key{};
  key.bytes().fill(byte);
  return key;
}

}  // namespace

TEST_CASE("the key follows from the job's key, the purpose and every nonce", "[runtime]") {
  const std::vector<runjob::rendezvous::Nonce> nonces = {key_of(1), key_of(2)};
  const LinkKey key = make_link_key(key_of(0), "data", nonces);
  CHECK(key == make_link_key(key_of(0), "data", nonces));
  CHECK(key != make_link_key(key_of(9), "data", nonces));
  CHECK(key != make_link_key(key_of(0), "control", nonces));
  CHECK(key != make_link_key(key_of(0), "data", {key_of(2), key_of(1)}));
}

TEST_CASE("both ends of a link prove the key", "[runtime]") {
  const LinkKey key = key_of(7);
  const LinkHello hello = make_hello(3, 1);
  const LinkAnswer answer = make_answer(key, hello);
  CHECK(is_genuine(key, hello, answer));
  const LinkProof proof = make_proof(key, hello, answer);
  CHECK(is_genuine(key, hello, answer, proof));
}

TEST_CASE("the keys of a link fit each other, and each direction and link has its own", "[runtime]") {
  const LinkKey key = key_of(7);
  const KeyExchange ours, theirs, other;
  const LinkHello hello = make_hello(3, 1, &ours);
  const LinkAnswer answer = make_answer(key, hello, &theirs);
  const auto sending = [&](const LinkKey& with, const LinkHello& first, const LinkAnswer& second,
                           const KeyExchange& own) { return make_seal_keys(with, first, second, true, own)->sending; };
  const runjob::SealKeys connecting = *make_seal_keys(key, hello, answer, true, ours),
                         listening = *make_seal_keys(key, hello, answer, false, theirs);
  CHECK(connecting.sending == listening.receiving);
  CHECK(connecting.receiving == listening.sending);
  CHECK(connecting.sending != connecting.receiving);
  CHECK(connecting.sending != sending(key_of(8), hello, answer, ours));
  CHECK(connecting.sending != sending(key, make_hello(3, 1, &ours), answer, ours));
  CHECK(connecting.sending != sending(key, hello, make_answer(key, hello, &theirs), ours));
  CHECK(connecting.sending != sending(key, hello, answer, other));  // who has recorded it and learns `key` has this
}

TEST_CASE("a public key that leads to no secret gives no keys", "[runtime]") {
  const KeyExchange exchange;
  LinkHello hello = make_hello(3, 1, &exchange);
  const LinkAnswer answer = make_answer(key_of(7), hello, &exchange);
  CHECK(make_seal_keys(key_of(7), hello, answer, false, exchange));
  hello.key = {};
  CHECK_FALSE(make_seal_keys(key_of(7), hello, answer, false, exchange));
}

TEST_CASE("nobody on the way can make members believe that the other one does not encrypt", "[runtime]") {
  const LinkKey key = key_of(7);
  const KeyExchange exchange;
  const LinkHello hello = make_hello(3, 1, &exchange);
  LinkHello changed = hello;
  changed.encrypts = 0;
  LinkAnswer answer = make_answer(key, changed, &exchange);
  CHECK_FALSE(is_genuine(key, hello, answer));
  answer = make_answer(key, hello, &exchange);
  answer.encrypts = 0;
  CHECK_FALSE(is_genuine(key, hello, answer));
}

TEST_CASE("nobody on the way can exchange a member's public key for his own", "[runtime]") {
  const LinkKey key = key_of(7);
  const KeyExchange ours, theirs, foreign;
  const LinkHello hello = make_hello(3, 1, &ours);
  LinkHello changed = hello;
  changed.key = foreign.public_key();
  CHECK_FALSE(is_genuine(key, hello, make_answer(key, changed, &theirs)));
  LinkAnswer answer = make_answer(key, hello, &theirs);
  const LinkProof proof = make_proof(key, hello, answer);
  CHECK_FALSE(is_genuine(key, changed, answer, proof));
  answer.key = foreign.public_key();
  CHECK_FALSE(is_genuine(key, hello, answer));
  CHECK_FALSE(is_genuine(key, hello, answer, proof));
}

TEST_CASE("another key, pair, direction or nonce proves nothing", "[runtime]") {
  const LinkKey key = key_of(7);
  const LinkHello hello = make_hello(3, 1);
  const LinkAnswer answer = make_answer(key, hello);
  const LinkProof proof = make_proof(key, hello, answer);
  SECTION("another key") {
    CHECK_FALSE(is_genuine(key_of(8), hello, answer));
    CHECK_FALSE(is_genuine(key, hello, answer, make_proof(key_of(8), hello, answer)));
  }
  SECTION("another pair of members") {
    LinkHello other = hello;
    other.to = 2;
    CHECK_FALSE(is_genuine(key, other, answer));
    CHECK_FALSE(is_genuine(key, other, answer, proof));
  }
  SECTION("the other direction") {
    LinkHello other = hello;
    std::swap(other.from, other.to);
    CHECK_FALSE(is_genuine(key, other, answer));
  }
  SECTION("a connection before: the same messages again") {
    const LinkHello again = make_hello(3, 1);
    CHECK_FALSE(is_genuine(key, again, answer));
    CHECK_FALSE(is_genuine(key, hello, make_answer(key, hello), proof));
  }
  SECTION("an answer sent back as a proof") {
    CHECK_FALSE(is_genuine(key, hello, answer, LinkProof{answer.mac}));
  }
}

TEST_CASE("no core dump has a key of a link, while it is used and afterwards", "[runtime][unit]") {
  MaskedKey link_key{}, own{}, shared{}, sending{}, receiving{};
  {
    Secret job_key;
    for (std::size_t i = 0; i < job_key.bytes().size(); ++i) job_key.bytes()[i] = static_cast<unsigned char>(5 * i + 1);
    const LinkKey key = make_link_key(job_key, "data", {runjob::rendezvous::random_nonce()});
    const Secret secret = make_link_key(job_key, "any secret", {});
    const KeyExchange exchange(secret), other;
    const LinkHello hello = make_hello(3, 1, &exchange);
    const LinkAnswer answer = make_answer(key, hello, &other);
    REQUIRE(is_genuine(key, hello, answer, make_proof(key, hello, answer)));
    const runjob::SealKeys keys = *make_seal_keys(key, hello, answer, true, exchange);
    own = masked(secret), shared = masked(*exchange.shared_secret(answer.key));
    link_key = masked(key), sending = masked(keys.sending), receiving = masked(keys.receiving);

    int ends[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
    LinkStream ours{runjob::UniqueFd{ends[0]}, keys};
    LinkStream theirs{runjob::UniqueFd{ends[1]}, {keys.receiving, keys.sending}};
    std::string text(3000, 'x');
    const iovec whole{text.data(), text.size()};
    REQUIRE(ours.send({&whole, 1}) == 3000);
    REQUIRE(theirs.receive({&whole, 1}) == 3000);
    for (const MaskedKey& each : {link_key, own, shared, sending, receiving, masked(job_key)})
      CHECK(copies_in_core_dump(each) == 0);
  }
  for (const MaskedKey& each : {link_key, own, shared, sending, receiving}) CHECK(copies_in_core_dump(each) == 0);
}
