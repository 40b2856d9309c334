#include "launcher/ssh/files/ssh_target.hpp"

#include "base/error.hpp"
#include "tests/catch.hpp"

using namespace runjob;
using NewHostKey = SshTarget::NewHostKey;

namespace {

const LocalAccount kAccount{"me", "/home/me", "1000", "laptop.example.org"};

struct Given {
  Host host;
  SshOptions options;
  std::string config;

  explicit Given(const std::string& text = "") : config(text) { host.name = "s1"; }

  SshTarget target() const {
    const IncludeReader nothing = [](const std::string&) { return std::vector<SshConfigText>(); };
    return ssh_target(host, options, {parse_ssh_config({config, "c"}, nothing)}, kAccount, "/run/agent");
  }
};

}  // namespace

TEST_CASE("without anything said, everything is as with ssh", "[unit]") {
  const SshTarget target = Given().target();
  CHECK(target.host == "s1");
  CHECK(target.address == "s1");
  CHECK(target.port == 22);
  CHECK(target.user == "me");
  CHECK(target.identities == std::vector<std::string>{"/home/me/.ssh/id_ed25519", "/home/me/.ssh/id_ecdsa",
                                                      "/home/me/.ssh/id_rsa", "/home/me/.ssh/id_ed25519_sk",
                                                      "/home/me/.ssh/id_ecdsa_sk"});
  CHECK(target.identities_are_defaults);
  CHECK_FALSE(target.identities_only);
  CHECK(target.agent_socket == "/run/agent");
  CHECK(target.known_hosts == std::vector<std::string>{"/home/me/.ssh/known_hosts", "/home/me/.ssh/known_hosts2",
                                                       "/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2"});
  CHECK(target.user_known_hosts == 2);
  CHECK(target.known_hosts_host == "s1");
  CHECK(target.known_hosts_port == 22);
  CHECK(target.new_host_key == NewHostKey::kRefuse);
  CHECK_FALSE(target.hash_known_hosts);
  CHECK(target.program_methods.empty());
  CHECK(target.needs_program.empty());
}

TEST_CASE("a host may be this one unless a user, a port or the configuration leads elsewhere", "[unit]") {
  CHECK(Given().target().may_be_this_host);
  CHECK(Given("HostName 10.0.0.5\nUser me\nPort 22\n").target().may_be_this_host);
  CHECK_FALSE(Given("Port 2222\n").target().may_be_this_host);
  CHECK_FALSE(Given("User somebody\n").target().may_be_this_host);
  Given option;
  option.options.port = 2222;
  CHECK_FALSE(option.target().may_be_this_host);
  Given user, port;
  user.host.user = "me";
  port.host.port = 22;
  CHECK_FALSE(user.target().may_be_this_host);
  CHECK_FALSE(port.target().may_be_this_host);
}

TEST_CASE("the host list comes before the options, these before the configuration", "[unit]") {
  Given given("Port 1\nUser config\nIdentityFile config\n");
  CHECK(given.target().port == 1);
  CHECK(given.target().user == "config");
  CHECK(given.target().identities == std::vector<std::string>{"config"});
  given.options.port = 2;
  given.options.identity = "/option";
  CHECK(given.target().port == 2);
  CHECK(given.target().identities == std::vector<std::string>{"/option", "config"});
  given.host.port = 3;
  given.host.user = "host";
  given.host.identity = "~/host";
  CHECK(given.target().port == 3);
  CHECK(given.target().user == "host");
  CHECK(given.target().identities == std::vector<std::string>{"/home/me/host", "config"});
  CHECK_FALSE(given.target().identities_are_defaults);
}

TEST_CASE("percent signs and the tilde stand for what ssh says they do", "[unit]") {
  CHECK(Given("HostName %h.example.org").target().address == "s1.example.org");
  CHECK(Given("HostName 100%%").target().address == "100%");
  const SshTarget target =
      Given("HostName 10.0.0.1\nUser you\nPort 5\nIdentityFile ~/%n-%h-%r-%u-%p-%d-%i-%L-%l-%k-%%\n").target();
  CHECK(target.identities ==
        std::vector<std::string>{"/home/me/s1-10.0.0.1-you-me-5-/home/me-1000-laptop-laptop.example.org-s1-%"});
}

TEST_CASE("what ssh alone can expand goes to ssh", "[unit]") {
  for (const char* config : {"HostName %u", "IdentityFile %C", "IdentityFile ${HOME}/key", "IdentityFile ~you/key",
                             "IdentityFile 100%", "UserKnownHostsFile %x", "IdentityAgent $AGENT"}) {
    INFO(config);
    CHECK_FALSE(Given(config).target().needs_program.empty());
  }
  CHECK(Given("IdentityFile %C").target().needs_program == "IdentityFile %C");
  CHECK(Given("ProxyJump gate").target().needs_program == "ProxyJump (c line 1)");
  Given given;
  given.options.command = "ssh -v";
  CHECK(given.target().needs_program == "--ssh-command");
}

TEST_CASE("the agent is the one that the configuration names", "[unit]") {
  CHECK(Given("IdentityAgent none").target().agent_socket.empty());
  CHECK(Given("IdentityAgent SSH_AUTH_SOCK").target().agent_socket == "/run/agent");
  CHECK(Given("IdentityAgent ~/agent").target().agent_socket == "/home/me/agent");
  CHECK(Given("IdentitiesOnly yes").target().identities_only);
  CHECK(Given("IdentityFile none").target().identities.empty());
}

TEST_CASE("host keys are looked up under the right name in the right files", "[unit]") {
  const SshTarget target = Given(
                               "HostName h\nPort 5\nUserKnownHostsFile ~/a %d/b\nGlobalKnownHostsFile none\n"
                               "HashKnownHosts yes\n")
                               .target();
  CHECK(target.known_hosts == std::vector<std::string>{"/home/me/a", "/home/me/b"});
  CHECK(target.user_known_hosts == 2);
  CHECK(target.known_hosts_host == "h");
  CHECK(target.known_hosts_port == 5);
  CHECK(target.hash_known_hosts);
  const SshTarget alias = Given("Port 5\nHostKeyAlias k\nUserKnownHostsFile none\n").target();
  CHECK(alias.known_hosts_host == "k");
  CHECK(alias.known_hosts_port == 22);
  CHECK(alias.user_known_hosts == 0);
}

TEST_CASE("new host keys are accepted by option, or as the configuration says", "[unit]") {
  for (const char* value : {"no", "off", "accept-new", "Accept-New"}) {
    INFO(value);
    CHECK(Given(std::string("StrictHostKeyChecking ") + value).target().new_host_key == NewHostKey::kAccept);
  }
  for (const char* value : {"yes", "ask"}) {
    INFO(value);
    CHECK(Given(std::string("StrictHostKeyChecking ") + value).target().new_host_key == NewHostKey::kRefuse);
  }
  Given given("StrictHostKeyChecking yes");
  given.options.accept_new_host_keys = true;
  CHECK(given.target().new_host_key == NewHostKey::kAccept);
}

TEST_CASE("methods that only ssh knows are remembered", "[unit]") {
  CHECK(Given("GSSAPIAuthentication yes\nHostbasedAuthentication yes\n").target().program_methods ==
        std::vector<std::string>{"gssapi-with-mic", "hostbased"});
}

TEST_CASE("messages say where a host is", "[unit]") {
  CHECK(place_of(Given().target()) == "s1 port 22");
  CHECK(place_of(Given("HostName h\nPort 5").target()) == "h port 5");
}
