#include "launcher/ssh/files/agent_answer.hpp"

#include "launcher/ssh/files/ssh_data.hpp"
#include "tests/catch.hpp"

using namespace runjob;

namespace {

std::string answer(char type, const std::string& rest) {
  return type + rest;
}

std::string packed(const std::vector<std::string>& strings) {
  std::string bytes;
  for (const std::string& each : strings) append_string(bytes, each);
  return bytes;
}

std::string number(std::uint32_t value) {
  std::string bytes;
  append_number(bytes, value);
  return bytes;
}

}  // namespace

TEST_CASE("answers are read whole or not at all", "[unit]") {
  const std::string two = answer(12, number(2) + packed({"blob", "comment", "b", ""}));
  const auto keys = parse_agent_keys(two);
  REQUIRE(keys.size() == 2);
  CHECK(keys[0].key.blob == "blob");
  CHECK(keys[0].comment == "comment");
  for (std::size_t size = 0; size < two.size(); ++size) CHECK(parse_agent_keys(two.substr(0, size)).empty());
  CHECK(parse_agent_keys(answer(5, "")).empty());
  CHECK(parse_agent_keys(answer(12, number(0xffffffffu))).empty());

  const std::string signature = answer(14, packed({packed({"ssh-ed25519", "signature"})}));
  CHECK(parse_agent_signature(signature) == "signature");
  for (std::size_t size = 0; size < signature.size(); ++size)
    CHECK_FALSE(parse_agent_signature(signature.substr(0, size)));
  CHECK_FALSE(parse_agent_signature(answer(5, "")));
}

TEST_CASE("the flags for the agent follow the algorithm in what is to be signed", "[unit]") {
  const auto request = [](const std::string& algorithm) {
    return packed({"session"}) + char(50) + packed({"me", "ssh-connection", "publickey"}) + char(1) +
           packed({algorithm, "blob"});
  };
  CHECK(agent_flags(request("ssh-ed25519")) == 0);
  CHECK(agent_flags(request("ssh-rsa")) == 0);
  CHECK(agent_flags(request("rsa-sha2-256")) == 2);
  CHECK(agent_flags(request("rsa-sha2-512")) == 4);
  CHECK(agent_flags("") == 0);
}
