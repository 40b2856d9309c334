#include "launcher/ssh/key_choice.hpp"

#include "tests/catch.hpp"
#include "tests/launcher/ssh/key_of.hpp"

using namespace runjob;

namespace {

const PublicKey kOne = key_of("ssh-ed25519", "1");
const PublicKey kTwo = key_of("ecdsa-sha2-nistp384", "2");
const PublicKey kRsa = key_of("ssh-rsa", "3");
const PublicKey kToken = key_of("sk-ssh-ed25519@openssh.com", "4");

IdentityFile file(const std::string& path, std::optional<PublicKey> key, bool encrypted = false) {
  IdentityFile identity;
  identity.path = path;
  identity.private_key = "private " + path;
  identity.public_key = std::move(key);
  identity.encrypted = encrypted;
  identity.is_rsa = identity.public_key == kRsa;
  return identity;
}

std::vector<AgentKey> agent(const std::vector<PublicKey>& keys) {
  std::vector<AgentKey> result;
  for (const PublicKey& key : keys) result.push_back({key, "comment"});
  return result;
}

std::string agent_name(const PublicKey& key) {
  return key.short_type() + " " + key.fingerprint() + " (ssh-agent)";
}

std::vector<std::string> names(const KeyChoice& choice) {
  std::vector<std::string> result;
  for (const KeyCandidate& each : choice.candidates) result.push_back(each.name);
  return result;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("a key file that others may read is not tried, unless ssh-agent holds the key", "[unit]") {
  IdentityFile exposed = file("a", kOne);
  exposed.too_open = 0644;
  const KeyChoice alone = choose_keys({exposed, file("b", kTwo)}, {}, {});
  CHECK(names(alone) == Names{"b"});
  CHECK(alone.too_open == Names{"Permissions 0644 for 'a' are too open"});
  const KeyChoice held = choose_keys({exposed}, agent({kOne}), {});
  CHECK(names(held) == Names{agent_name(kOne)});
  CHECK(held.too_open.empty());
}

TEST_CASE("a named file is tried before ssh-agent's keys, a default one after them", "[unit]") {
  const auto files = {file("a", kOne)};
  const KeyChoice named = choose_keys(files, agent({kTwo}), {});
  CHECK(names(named) == Names{"a", agent_name(kTwo)});
  CHECK(named.candidates[0].private_key == "private a");
  CHECK(named.candidates[0].file == "a");
  CHECK_FALSE(named.candidates[0].agent_key);
  CHECK(named.candidates[1].agent_key == kTwo);
  KeyRules rules;
  rules.identities_are_defaults = true;
  CHECK(names(choose_keys(files, agent({kTwo}), rules)) == Names{agent_name(kTwo), "a"});
}

TEST_CASE("a key that ssh-agent holds too is tried once, by ssh-agent, encrypted or not", "[unit]") {
  const bool encrypted = GENERATE(false, true);
  const KeyChoice choice = choose_keys({file("a", kOne, encrypted)}, agent({kTwo, kOne}), {});
  CHECK(names(choice) == Names{agent_name(kOne), agent_name(kTwo)});
  CHECK(choice.locked.empty());
}

TEST_CASE("IdentitiesOnly leaves ssh-agent's other keys out", "[unit]") {
  KeyRules rules;
  rules.identities_only = true;
  CHECK(names(choose_keys({file("a", kOne)}, agent({kTwo, kOne}), rules)) == Names{agent_name(kOne)});
}

TEST_CASE("an encrypted file that nobody has opened is locked", "[unit]") {
  const KeyChoice choice = choose_keys({file("a", kOne, true), file("b", std::nullopt, true)}, {}, {});
  CHECK(choice.candidates.empty());
  CHECK(choice.locked == Names{"a", "b"});
}

TEST_CASE("what libssh2 cannot use is left for ssh", "[unit]") {
  IdentityFile pem = file("pem", std::nullopt);
  pem.is_rsa = true;
  IdentityFile certified = file("c", kOne);
  certified.has_certificate = true;
  const KeyChoice choice = choose_keys({file("r", kRsa), pem, file("t", kToken), certified}, agent({kRsa, kToken}), {});
  CHECK(names(choice) == Names{"c"});
  CHECK(choice.for_program == Names{agent_name(kRsa), "pem", agent_name(kToken), "c-cert.pub"});
  KeyRules rules;
  rules.rsa_works = true;
  CHECK(names(choose_keys({pem}, agent({kRsa}), rules)) == Names{"pem", agent_name(kRsa)});
}

TEST_CASE("a public key alone is good only when ssh-agent holds the private one", "[unit]") {
  IdentityFile only_public = file("a.pub", kOne);
  only_public.private_key.clear();
  CHECK(names(choose_keys({only_public}, {}, {})).empty());
  CHECK(names(choose_keys({only_public}, agent({kOne}), {})) == Names{agent_name(kOne)});
}

TEST_CASE("the same key in two files is tried once", "[unit]") {
  CHECK(names(choose_keys({file("a", kOne), file("b", kOne), file("p", std::nullopt)}, {}, {})) == Names{"a", "p"});
}
