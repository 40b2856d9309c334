#include "launcher/ssh/host_key_check.hpp"

#include <filesystem>
#include <sys/stat.h>

#include "base/error.hpp"
#include "launcher/ssh/ssh_program_needed.hpp"
#include "launcher/ssh/ssh_session.hpp"
#include "tests/catch.hpp"
#include "tests/launcher/ssh/key_of.hpp"
#include "tests/launcher/ssh/test_folder.hpp"

using namespace runjob;

namespace {

const PublicKey kKey = key_of("ssh-ed25519", "1");
const PublicKey kOther = key_of("ssh-ed25519", "2");
const PublicKey kEcdsa = key_of("ecdsa-sha2-nistp384", "3");
const PublicKey kRsa = key_of("ssh-rsa", "4");

struct Fixture {
  TestFolder folder;
  SshTarget target;
  HostKeyCheck check;

  Fixture() {
    target.host = "s1";
    target.address = "10.0.0.1";
    target.user = "me";
    target.port = 2222;
    target.known_hosts_host = "10.0.0.1";
    target.known_hosts_port = 2222;
    target.known_hosts = {folder.path("new/known_hosts"), folder.path("system")};
    target.user_known_hosts = 1;
  }

  std::string known() const { return folder.read("new/known_hosts"); }
  mode_t mode(const std::string& name) const {
    struct stat facts {};
    return ::stat(folder.path(name).c_str(), &facts) == 0 ? facts.st_mode & 0777 : 0;
  }
};

}  // namespace

TEST_CASE("a known key passes, from whichever file", "[unit]") {
  Fixture fixture;
  const char* name = GENERATE("new/known_hosts", "system");
  fixture.folder.write(name, known_hosts_line("10.0.0.1", 2222, kKey, ""));
  CHECK_NOTHROW(fixture.check.check(fixture.target, kKey));
}

TEST_CASE("an unknown key is refused with its fingerprint and two ways to accept it", "[unit]") {
  Fixture fixture;
  CHECK_THROWS_WITH(fixture.check.check(fixture.target, kKey),
                    "s1: its host key is not known: ED25519 " + kKey.fingerprint() +
                        "; if that is the host's, accept it with --accept-new-host-keys or by connecting once: ssh -p "
                        "2222 me@s1");
  CHECK(fixture.known().empty());
}

TEST_CASE("a key that comes into a file later is known from then on", "[unit]") {
  Fixture fixture;
  fixture.folder.write("system", known_hosts_line("10.0.0.2", 22, kOther, ""));
  CHECK_THROWS_AS(fixture.check.check(fixture.target, kKey), Error);
  const char* name = GENERATE("new/known_hosts", "system");
  fixture.folder.write(name, known_hosts_line("10.0.0.1", 2222, kKey, ""));
  CHECK_NOTHROW(fixture.check.check(fixture.target, kKey));
}

TEST_CASE("a key that was accepted for the job only stays so when a file changes", "[unit]") {
  Fixture fixture;
  fixture.target.user_known_hosts = 0;
  fixture.target.new_host_key = SshTarget::NewHostKey::kAccept;
  fixture.check.check(fixture.target, kKey);
  fixture.folder.write("system", known_hosts_line("10.0.0.2", 22, kOther, ""));
  fixture.target.new_host_key = SshTarget::NewHostKey::kRefuse;
  CHECK_NOTHROW(fixture.check.check(fixture.target, kKey));
}

TEST_CASE("a changed key is refused with the line that says so, whatever is accepted", "[unit]") {
  Fixture fixture;
  fixture.target.new_host_key = GENERATE(SshTarget::NewHostKey::kRefuse, SshTarget::NewHostKey::kAccept);
  const std::string file =
      fixture.folder.write("new/known_hosts", "# mine\n" + known_hosts_line("10.0.0.1", 2222, kOther, ""));
  CHECK_THROWS_WITH(fixture.check.check(fixture.target, kKey),
                    "s1: its host key has changed: it is ED25519 " + kKey.fingerprint() + ", not what " + file +
                        " line 2 says; if the host was set up anew, remove the old key with " + "ssh-keygen -f " +
                        file + " -R '[10.0.0.1]:2222', else somebody may be listening in between");
}

TEST_CASE("a revoked key is refused", "[unit]") {
  Fixture fixture;
  const std::string file = fixture.folder.write("system", "@revoked " + known_hosts_line("*", 22, kKey, ""));
  fixture.target.known_hosts_port = 22;
  fixture.target.new_host_key = SshTarget::NewHostKey::kAccept;
  CHECK_THROWS_WITH(fixture.check.check(fixture.target, kKey), ContainsSubstring("is revoked by " + file + " line 1"));
}

TEST_CASE("a new key that may be accepted is added to the user's file, once", "[unit]") {
  Fixture fixture;
  fixture.target.new_host_key = SshTarget::NewHostKey::kAccept;
  fixture.target.hash_known_hosts = GENERATE(false, true);
  fixture.check.check(fixture.target, kKey);
  fixture.check.check(fixture.target, kKey);
  CHECK_THROWS(fixture.check.check(fixture.target, kOther));
  const auto entries = parse_known_hosts(fixture.known(), "kh");
  REQUIRE(entries.size() == 1);
  CHECK(judge_host_key(entries, "10.0.0.1", 2222, kKey).kind == HostKeyVerdict::Kind::kKnown);
  CHECK(judge_host_key(entries, "10.0.0.1", 22, kKey).kind == HostKeyVerdict::Kind::kUnknown);
  CHECK((entries[0].names == "[10.0.0.1]:2222") == !fixture.target.hash_known_hosts);
  CHECK(fixture.mode("new") == 0700);
  CHECK(fixture.mode("new/known_hosts") == 0600);
  HostKeyCheck later;
  CHECK_NOTHROW(later.check(fixture.target, kKey));
}

TEST_CASE("a new key is accepted also where it cannot be written down", "[unit]") {
  Fixture fixture;
  fixture.target.new_host_key = SshTarget::NewHostKey::kAccept;
  SECTION("because there is no file") {
    fixture.target.user_known_hosts = 0;
  }
  SECTION("because nothing keeps it") {
    fixture.target.known_hosts.front() = "/dev/null";
  }
  SECTION("because the folder cannot be made") {
    fixture.target.known_hosts.front() = "/proc/no/known_hosts";
  }
  CHECK_NOTHROW(fixture.check.check(fixture.target, kKey));
  CHECK_NOTHROW(fixture.check.check(fixture.target, kKey));
  CHECK_THROWS(fixture.check.check(fixture.target, kOther));
}

TEST_CASE("a line is appended as a line of its own", "[unit]") {
  const TestFolder folder;
  const std::string file = folder.write("known_hosts", "without an end");
  append_known_host(file, "one\n");
  append_known_host(file, "two\n");
  CHECK(folder.read("known_hosts") == "without an end\none\ntwo\n");
}

TEST_CASE("the algorithms of known keys are preferred, so that no other key is shown", "[unit]") {
  Fixture fixture;
  CHECK(fixture.check.algorithms(fixture.target).substr(0, 31) == "ssh-ed25519,ecdsa-sha2-nistp256");
  HostKeyCheck check;
  fixture.folder.write("system", known_hosts_line("10.0.0.1", 2222, kEcdsa, ""));
  CHECK(check.algorithms(fixture.target).substr(0, 31) == "ecdsa-sha2-nistp384,ssh-ed25519");
}

TEST_CASE("a host whose known keys libssh2 cannot check is for ssh", "[unit]") {
  Fixture fixture;
  fixture.folder.write("new/known_hosts", known_hosts_line("10.0.0.1", 2222, kRsa, ""));
  if (libssh2_has_rsa_sha2()) {
    CHECK(fixture.check.algorithms(fixture.target).substr(0, 12) == "rsa-sha2-512");
  } else {
    CHECK_THROWS_AS(fixture.check.algorithms(fixture.target), SshProgramNeeded);
  }
  HostKeyCheck check;
  fixture.folder.write("new/known_hosts", "@cert-authority " + known_hosts_line("*", 22, kKey, ""));
  fixture.target.known_hosts_port = 22;
  CHECK_THROWS_WITH(check.algorithms(fixture.target), ContainsSubstring("@cert-authority"));
  HostKeyCheck again;
  fixture.folder.write("system", known_hosts_line("10.0.0.1", 22, kKey, ""));
  CHECK_NOTHROW(again.algorithms(fixture.target));
}
