#include "launcher/ssh/authenticate.hpp"

#include "tests/catch.hpp"
#include "tests/launcher/ssh/test_client.hpp"

using namespace runjob;

namespace {

std::string user() {
  return local_account().name;
}

std::string fingerprint_of(const TestClient& client, const std::string& public_file) {
  return parse_public_key(client.home.read(public_file)).value().fingerprint();
}

}  // namespace

TEST_CASE("each kind of key that libssh2 knows logs in from its file", "[ssh]") {
  TestSshd sshd;
  TestClient client;
  client.know(sshd);
  using Options = std::vector<std::string>;
  const Options options = GENERATE(Options{"-t", "ed25519"}, Options{"-t", "ecdsa", "-b", "256"},
                                   Options{"-t", "ecdsa", "-b", "384"}, Options{"-t", "ecdsa", "-b", "521"},
                                   Options{"-t", "ecdsa", "-m", "PEM"}, Options{"-t", "ecdsa", "-m", "PKCS8"});
  INFO(options[1] << " " << options.back());
  client.options.identity = client.home.make_key("key", options);
  sshd.folder().write("key.pub", client.home.read("key.pub"));
  sshd.authorize("key");
  CHECK(client.run(sshd.port(), "echo in") == "in\n");
}

TEST_CASE("an RSA key is for ssh where libssh2 cannot sign as servers want it", "[ssh]") {
  TestSshd sshd;
  TestClient client;
  client.know(sshd);
  client.make_identity(sshd, "rsa");
  if (libssh2_has_rsa_sha2()) {
    CHECK(client.run(sshd.port(), "echo in") == "in\n");
  } else {
    CHECK(client.error(sshd.port()) ==
          std::string("ssh: libssh2 ") + libssh2_version(0) + " cannot use " + client.home.path(".ssh/id_rsa"));
  }
}

TEST_CASE("an RSA key that nobody needs is no reason for ssh; one that may be needed is", "[ssh]") {
  TestSshd sshd;
  TestClient client;
  client.know(sshd);
  client.home.make_key(".ssh/id_rsa", {"-t", "rsa"});
  client.home.make_key(".ssh/id_ecdsa", {"-t", "ecdsa"});
  if (!libssh2_has_rsa_sha2())
    CHECK_THAT(client.error(sshd.port()), ContainsSubstring("ssh: libssh2 ") && ContainsSubstring("id_rsa"));
  client.make_identity(sshd, "ed25519");
  CHECK(client.run(sshd.port(), "echo in") == "in\n");
}

TEST_CASE("a key of ssh-agent logs in", "[ssh]") {
  TestSshd sshd;
  TestClient client;
  client.know(sshd);
  const std::string type = GENERATE("ed25519", "ecdsa");
  client.make_identity(sshd, type, "secret");
  TestAgent agent;
  client.agent_socket = agent.socket();
  SECTION("that its file has encrypted") {
    agent.add(client.home.path(".ssh/id_" + type), "secret");
  }
  SECTION("that has no file any more") {
    client.home.make_key("wrong", {"-t", "ed25519"});
    agent.add(client.home.path("wrong"));
    agent.add(client.home.path(".ssh/id_" + type), "secret");
    run_program({"rm", client.home.path(".ssh/id_" + type)});
  }
  CHECK(client.run(sshd.port(), "echo in") == "in\n");
}

TEST_CASE("a named key comes before all that ssh-agent holds", "[ssh]") {
  TestSshd sshd({"ed25519"}, "MaxAuthTries 2");
  TestClient client;
  client.know(sshd);
  client.make_identity(sshd);
  TestAgent agent;
  client.agent_socket = agent.socket();
  for (const char* name : {"a", "b", "c"}) agent.add(client.home.make_key(name, {"-t", "ed25519"}));
  CHECK(client.error(sshd.port()) == "127.0.0.1: it ended the connection while user " + user() +
                                         " was logging in (Too many authentication failures): tried ED25519 " +
                                         fingerprint_of(client, "a.pub") + " (ssh-agent), ED25519 " +
                                         fingerprint_of(client, "b.pub") +
                                         " (ssh-agent); name the right key with -i, or look into the host's log");
  client.options.identity = client.home.path(".ssh/id_ed25519");
  CHECK(client.run(sshd.port(), "echo in") == "in\n");
}

TEST_CASE("an agent that does not sign leaves the next key to be tried", "[ssh]") {
  TestSshd sshd;
  TestClient client;
  client.know(sshd);
  TestAgent agent;
  client.agent_socket = agent.socket();
  client.home.make_key("asked", {"-t", "ed25519"});
  sshd.folder().write("asked.pub", client.home.read("asked.pub"));
  sshd.authorize("asked");
  // ssh-add -c makes the agent ask somebody, and nobody is there.
  run_program(
      {"env", "-u", "DISPLAY", "SSH_AUTH_SOCK=" + agent.socket(), "ssh-add", "-q", "-c", client.home.path("asked")});
  CHECK_THAT(client.error(sshd.port()),
             ContainsSubstring("accepts no key of ours for user " + user() + " (tried ED25519"));
  client.make_identity(sshd);
  CHECK(client.run(sshd.port(), "echo in") == "in\n");
}

TEST_CASE("a login that fails says what was tried and what to do", "[ssh]") {
  TestSshd sshd;
  TestClient client;
  client.know(sshd);
  const std::string start = "127.0.0.1: it accepts no key of ours for user " + user();
  SECTION("no key at all") {
    CHECK(client.error(sshd.port()) ==
          start + " (none was tried); name one with -i, or make one with ssh-keygen and put it there with ssh-copy-id");
  }
  SECTION("a key that the host does not know") {
    client.home.make_key(".ssh/id_ecdsa", {"-t", "ecdsa"});
    CHECK(client.error(sshd.port()) == start + " (tried " + client.home.path(".ssh/id_ecdsa") +
                                           "); check the user, and that the public key is in authorized_keys there: "
                                           "ssh-copy-id " +
                                           user() + "@127.0.0.1");
  }
  SECTION("an encrypted key that no agent holds") {
    client.make_identity(sshd, "ed25519", "secret");
    const std::string path = client.home.path(".ssh/id_ed25519");
    CHECK(client.error(sshd.port()) ==
          start + " (none was tried); " + path + " has a passphrase, so give it to ssh-agent first: ssh-add " + path);
  }
  SECTION("a key that others may read") {
    client.make_identity(sshd);
    const std::string path = client.home.path(".ssh/id_ed25519");
    REQUIRE(::chmod(path.c_str(), 0644) == 0);
    CHECK(client.error(sshd.port()) ==
          start + " (none was tried); Permissions 0644 for '" + path +
              "' are too open, so the key is ignored, as ssh does; take the rights of others away with chmod go=");
    REQUIRE(::chmod(path.c_str(), 0600) == 0);
    CHECK(client.run(sshd.port(), "echo in") == "in\n");
  }
  SECTION("a user who is not there") {
    client.make_identity(sshd);
    client.host.user = "nobody-of-this-name";
    CHECK_THAT(client.error(sshd.port()),
               ContainsSubstring("127.0.0.1: it accepts no key of ours for user nobody-of-this-name (tried "));
  }
}

TEST_CASE("a host that offers a method that only ssh knows is for ssh when the configuration has it", "[ssh]") {
  TestSshd sshd({"ed25519"}, "GSSAPIAuthentication yes");
  TestClient client;
  client.know(sshd);
  client.home.make_key(".ssh/id_ecdsa", {"-t", "ecdsa"});
  CHECK_THAT(client.error(sshd.port()), ContainsSubstring("accepts no key of ours"));
  client.config = "GSSAPIAuthentication yes";
  CHECK(client.error(sshd.port()) == "ssh: libssh2 does not know gssapi-with-mic, which the host offers");
}
