#include "runtime/links/handshake.hpp"

#include <sys/socket.h>

#include "runtime/links/link_stream.hpp"
#include "tests/catch.hpp"
#include "tests/core_dump.hpp"

using runjob::copies_in_core_dump;
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
  const LinkHello hello = make_hello(3, 1, /*encrypts=*/true);
  const LinkAnswer answer = make_answer(key, hello, /*encrypts=*/true);
  const runjob::SealKeys connecting = make_seal_keys(key, hello, answer, true),
                         listening = make_seal_keys(key, hello, answer, false);
  CHECK(connecting.sending == listening.receiving);
  CHECK(connecting.receiving == listening.sending);
  CHECK(connecting.sending != connecting.receiving);
  CHECK(connecting.sending != make_seal_keys(key_of(8), hello, answer, true).sending);
  CHECK(connecting.sending != make_seal_keys(key, make_hello(3, 1, true), answer, true).sending);
  CHECK(connecting.sending != make_seal_keys(key, hello, make_answer(key, hello, true), true).sending);
}

TEST_CASE("nobody on the way can make members believe that the other one does not encrypt", "[runtime]") {
  const LinkKey key = key_of(7);
  const LinkHello hello = make_hello(3, 1, /*encrypts=*/true);
  LinkHello changed = hello;
  changed.encrypts = 0;
  LinkAnswer answer = make_answer(key, changed, /*encrypts=*/true);
  CHECK_FALSE(is_genuine(key, hello, answer));
  answer = make_answer(key, hello, true);
  answer.encrypts = 0;
  CHECK_FALSE(is_genuine(key, hello, answer));
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
  MaskedKey link_key{}, sending{}, receiving{};
  {
    Secret job_key;
    for (std::size_t i = 0; i < job_key.bytes().size(); ++i) job_key.bytes()[i] = static_cast<unsigned char>(5 * i + 1);
    const LinkKey key = make_link_key(job_key, "data", {runjob::rendezvous::random_nonce()});
    const LinkHello hello = make_hello(3, 1, true);
    const LinkAnswer answer = make_answer(key, hello, true);
    REQUIRE(is_genuine(key, hello, answer, make_proof(key, hello, answer)));
    const runjob::SealKeys keys = make_seal_keys(key, hello, answer, true);
    link_key = masked(key), sending = masked(keys.sending), receiving = masked(keys.receiving);

    int ends[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
    LinkStream ours{runjob::UniqueFd{ends[0]}, keys};
    LinkStream theirs{runjob::UniqueFd{ends[1]}, {keys.receiving, keys.sending}};
    std::string text(3000, 'x');
    const iovec whole{text.data(), text.size()};
    REQUIRE(ours.send({&whole, 1}) == 3000);
    REQUIRE(theirs.receive({&whole, 1}) == 3000);
    for (const MaskedKey& each : {link_key, sending, receiving, masked(job_key)}) CHECK(copies_in_core_dump(each) == 0);
  }
  for (const MaskedKey& each : {link_key, sending, receiving}) CHECK(copies_in_core_dump(each) == 0);
}
