#include "launcher/ssh/files/known_hosts.hpp"

#include "tests/catch.hpp"
#include "tests/launcher/ssh/key_of.hpp"
#include "tests/launcher/ssh/test_folder.hpp"

using namespace runjob;
using Kind = HostKeyVerdict::Kind;

namespace {

const PublicKey kEd = key_of("ssh-ed25519", "1");
const PublicKey kOther = key_of("ssh-ed25519", "2");
const PublicKey kEcdsa = key_of("ecdsa-sha2-nistp256", "3");

std::string line(const std::string& names, const PublicKey& key) {
  return names + " " + to_text(key) + "\n";
}

HostKeyVerdict judge(const std::vector<KnownHost>& entries, int port = 22, const PublicKey& key = kEd) {
  return judge_host_key(entries, "s1", port, key);
}

}  // namespace

TEST_CASE("lines are read with their numbers; what cannot be understood is skipped", "[unit]") {
  const std::string text = "# comment\n\n" + line("s1,10.0.0.1", kEd) + "s2 ssh-ed25519\ns3 ssh-ed25519 AAAA\n" +
                           "@unknown " + line("s4", kEd) + "@revoked " + line("s5", kEd) + "  @cert-authority\t" +
                           line("*.org", kEcdsa) + "s6 " + to_text(kEd) + " a comment\r";
  const auto entries = parse_known_hosts(text, "kh");
  REQUIRE(entries.size() == 4);
  CHECK(entries[0].names == "s1,10.0.0.1");
  CHECK(entries[0].key == kEd);
  CHECK(entries[0].line == 3);
  CHECK(entries[0].file == "kh");
  CHECK(entries[1].marker == KnownHost::Marker::kRevoked);
  CHECK(entries[2].marker == KnownHost::Marker::kCertAuthority);
  CHECK(entries[2].key == kEcdsa);
  CHECK(entries[3].names == "s6");
  CHECK(entries[3].line == 9);
}

TEST_CASE("a host is known by its name, in any case, or by a pattern", "[unit]") {
  for (const char* names : {"s1", "S1", "s2,s1", "s?", "*", "s*,!s2"}) {
    INFO(names);
    CHECK(judge(parse_known_hosts(line(names, kEd), "kh")).kind == Kind::kKnown);
  }
  for (const char* names : {"s2", "s11", "s*,!s1", "[s1]:2222", "|1|x|y", "|1|", ","}) {
    INFO(names);
    CHECK(judge(parse_known_hosts(line(names, kEd), "kh")).kind == Kind::kUnknown);
  }
}

TEST_CASE("names that ssh-keygen has hashed are found", "[unit]") {
  const TestFolder folder;
  const std::string file = folder.write("kh", line("s1", kEd) + line("[s1]:2222", kOther));
  run_program({"ssh-keygen", "-H", "-f", file});
  REQUIRE(folder.read("kh").substr(0, 3) == "|1|");
  const auto entries = parse_known_hosts(folder.read("kh"), "kh");
  REQUIRE(entries.size() == 2);
  CHECK(judge(entries).kind == Kind::kKnown);
  CHECK(judge(entries, 2222, kOther).kind == Kind::kKnown);
  CHECK(judge_host_key(entries, "s2", 22, kEd).kind == Kind::kUnknown);
}

TEST_CASE("another key than the known one is a changed key, of whatever type", "[unit]") {
  const auto entries = parse_known_hosts(line("s2", kEd) + line("s1", kOther) + line("s1", kEcdsa), "kh");
  const HostKeyVerdict verdict = judge(entries);
  CHECK(verdict.kind == Kind::kChanged);
  REQUIRE(verdict.entry != nullptr);
  CHECK(verdict.entry->line == 2);
  CHECK(judge(parse_known_hosts(line("s1", kEcdsa), "kh")).kind == Kind::kChanged);
}

TEST_CASE("one matching line is enough, unless the key is revoked", "[unit]") {
  CHECK(judge(parse_known_hosts(line("s1", kOther) + line("s1", kEd), "kh")).kind == Kind::kKnown);
  CHECK(judge(parse_known_hosts(line("s1", kEd) + "@revoked " + line("*", kEd), "kh")).kind == Kind::kRevoked);
  CHECK(judge(parse_known_hosts("@revoked " + line("*", kEd) + line("s1", kEd), "kh")).kind == Kind::kRevoked);
  CHECK(judge(parse_known_hosts(line("s1", kEd) + "@revoked " + line("*", kOther), "kh")).kind == Kind::kKnown);
  CHECK(judge(parse_known_hosts("@cert-authority " + line("*", kEd), "kh")).kind == Kind::kUnknown);
}

TEST_CASE("another port is another name, and the name alone is good only for the same key", "[unit]") {
  const auto entries = parse_known_hosts(line("s1", kEd) + line("[s1]:2222", kOther), "kh");
  CHECK(judge(entries, 2222, kOther).kind == Kind::kKnown);
  CHECK(judge(entries, 2222, kEd).kind == Kind::kChanged);
  CHECK(judge(entries, 2223, kEd).kind == Kind::kKnown);
  CHECK(judge(entries, 2223, kOther).kind == Kind::kUnknown);
}

TEST_CASE("the known types are those of usable keys, once each", "[unit]") {
  const auto entries = parse_known_hosts(line("s1", kEcdsa) + line("s1", kEd) + line("s1", kOther) + "@revoked " +
                                             line("s1", key_of("ssh-rsa", "r")) + line("s2", key_of("ssh-dss", "d")),
                                         "kh");
  CHECK(known_key_types(entries, "S1", 22) == std::vector<std::string>{"ecdsa-sha2-nistp256", "ssh-ed25519"});
  CHECK(known_key_types(entries, "s1", 2222).size() == 2);
  CHECK(known_key_types(entries, "s3", 22).empty());
}

TEST_CASE("a certificate authority is noticed for its hosts", "[unit]") {
  const auto entries = parse_known_hosts("@cert-authority " + line("*.org", kEd), "kh");
  CHECK(has_cert_authority(entries, "a.org", 22));
  CHECK_FALSE(has_cert_authority(entries, "a.com", 22));
}

TEST_CASE("a line that we write is one that we read, hashed or not", "[unit]") {
  const std::string salt = GENERATE(std::string(), std::string(20, 's'));
  const int port = GENERATE(22, 2222);
  const std::string text = known_hosts_line("S1", port, kEd, salt);
  CHECK(text.back() == '\n');
  CHECK((text.find("s1") == std::string::npos) == !salt.empty());
  CHECK(judge(parse_known_hosts(text, "kh"), port).kind == Kind::kKnown);
}
