#include "launcher/ssh/files/ssh_config.hpp"

#include <map>

#include "base/error.hpp"
#include "tests/catch.hpp"

using namespace runjob;

namespace {

using Files = std::map<std::string, std::string>;

std::vector<SshDirective> parse(const std::string& text, const Files& files = {}) {
  const IncludeReader include = [&](const std::string& pattern) {
    std::vector<SshConfigText> found;
    if (files.contains(pattern)) found.push_back({files.at(pattern), pattern});
    return found;
  };
  return parse_ssh_config({text, "config"}, include);
}

SshHostConfig config_of(const std::string& host, const std::string& text, const Files& files = {}) {
  return config_of_host({parse(text, files)}, host);
}

}  // namespace

TEST_CASE("a line is a keyword and its arguments, however they are written", "[unit]") {
  for (const char* text : {"User me", "  user\tme  ", "USER=me", "User = me", "User \"me\"", "User 'me' # me",
                           "User me\r\n", "\n#User you\nUser me", "User m\"\"e", "User=\"me\""}) {
    INFO(text);
    CHECK(config_of("s1", text).user == "me");
  }
  const auto lines = parse("UserKnownHostsFile a \"b c\" 'd' e\\\"f g=h # x\n");
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].keyword == "userknownhostsfile");
  CHECK(lines[0].arguments == std::vector<std::string>{"a", "b c", "d", "e\"f", "g=h"});
  CHECK(lines[0].place == "config line 1");
}

TEST_CASE("what cannot be read names its line", "[unit]") {
  CHECK_THROWS_WITH(parse("User me\nUser \"me\n"), "config line 2: a quote (\") has no end");
  CHECK_THROWS_WITH(parse("Host"), "config line 1: Host has no argument");
  CHECK_THROWS_WITH(config_of("s1", "Port x"), "config line 1: Port: 'x' is not a whole number from 1 to 65535");
  CHECK_THROWS_WITH(config_of("s1", "IdentitiesOnly maybe"),
                    "config line 1: identitiesonly is neither yes nor no: 'maybe'");
  CHECK_NOTHROW(config_of("s2", "Host s1\n  Port x\n"));
}

TEST_CASE("every keyword that is understood reaches its field", "[unit]") {
  const SshHostConfig config = config_of("s1",
                                         "HostName 10.0.0.1\nUser me\nPort 2222\nIdentityFile a\nIdentityFile b\n"
                                         "IdentityFile a\nIdentitiesOnly yes\nIdentityAgent none\nHostKeyAlias k\n"
                                         "UserKnownHostsFile u v\nGlobalKnownHostsFile g\nStrictHostKeyChecking No\n"
                                         "HashKnownHosts yes\nGSSAPIAuthentication yes\nHostbasedAuthentication no\n");
  CHECK(config.host_name == "10.0.0.1");
  CHECK(config.user == "me");
  CHECK(config.port == 2222);
  CHECK(config.identity_files == std::vector<std::string>{"a", "b"});
  CHECK(config.identities_only == true);
  CHECK(config.identity_agent == "none");
  CHECK(config.host_key_alias == "k");
  CHECK(config.user_known_hosts == std::vector<std::string>{"u", "v"});
  CHECK(config.global_known_hosts == std::vector<std::string>{"g"});
  CHECK(config.strict_host_key_checking == "no");
  CHECK(config.hash_known_hosts == true);
  CHECK(config.gssapi_authentication == true);
  CHECK(config.host_based_authentication == false);
  CHECK(config.needs_program.empty());
}

TEST_CASE("a Host block is for the hosts that its patterns match, and the first value counts", "[unit]") {
  const std::string text =
      "Port 1\n"
      "Host s1 s2\n  User first\n"
      "Host s* !s3\n  User second\n  HostName %h.example.org\n"
      "Host *\n  User third\n  Port 2\n";
  CHECK(config_of("s1", text).user == "first");
  CHECK(config_of("s4", text).user == "second");
  CHECK(config_of("s3", text).user == "third");
  CHECK_FALSE(config_of("s3", text).host_name);
  CHECK(config_of("s1", text).host_name == "%h.example.org");
  CHECK(config_of("x", text).port == 1);
}

TEST_CASE("files count in their order, and a block ends with its file", "[unit]") {
  const auto user = parse("Host s1\n  User mine\n");
  const auto system = parse("User theirs\nPort 22\n");
  CHECK(config_of_host({user, system}, "s1").user == "mine");
  CHECK(config_of_host({user, system}, "s1").port == 22);
  CHECK(config_of_host({user, system}, "s2").user == "theirs");
}

TEST_CASE("what is included stands where its Include does", "[unit]") {
  const Files files = {{"users", "User included\nHost s2\n  Port 2\n"}, {"more", "Include users\nUser more\n"}};
  CHECK(config_of("s1", "Include users\nUser after\n", files).user == "included");
  CHECK(config_of("s1", "User before\nInclude users\n", files).user == "before");
  CHECK(config_of("s1", "Include nothing more\n", files).user == "included");
  // The Host lines of what a block includes do not reach beyond it, in neither direction.
  CHECK(config_of("s1", "Host s1\n Include users\n User own\n Port 3\n", files).port == 3);
  CHECK_FALSE(config_of("s2", "Host s1\n Include users\n", files).port);
  CHECK(config_of("s2", "Host s*\n Include users\n", files).port == 2);
}

TEST_CASE("a file that includes itself is an error", "[unit]") {
  CHECK_THROWS_WITH(config_of("s1", "Include a", {{"a", "Include a"}}), "a line 1: Include is more than 16 deep");
  CHECK_THROWS_WITH(config_of("s1", "Include a", {{"a", "Include a a a"}}), ContainsSubstring("a line 1: "));
}

TEST_CASE("what only ssh can do is named with its place", "[unit]") {
  const std::vector<std::pair<std::string, std::string>> table = {
      {"ProxyJump gate", "ProxyJump (config line 1)"},
      {"ProxyCommand nc %h %p", "ProxyCommand (config line 1)"},
      {"Host s1\n  CertificateFile c", "CertificateFile (config line 2)"},
      {"Match host s1\n  User me", "Match (config line 1)"},
      {"Match final all", "Match (config line 1)"},
      {"Ciphers aes256-ctr", "Ciphers (config line 1)"},
      {"CanonicalizeHostname yes", "CanonicalizeHostname (config line 1)"},
      {"Host s2\n  ProxyJump gate", ""},
      {"ProxyJump none\nHost *\n  ProxyJump gate", ""},
      {"Match all\n  User me", ""},
      {"Host s2\n  Match exec x", "Match (config line 2)"},
      {"SendEnv LANG LC_*\nForwardAgent yes\nServerAliveInterval 5\nControlMaster auto", ""},
  };
  for (const auto& [text, reason] : table) {
    INFO(text);
    CHECK(config_of("s1", text).needs_program == reason);
  }
  CHECK(config_of("s1", "Match all\n  User me").user == "me");
  CHECK_FALSE(config_of("s1", "Match user x\n  User me").user);
}
