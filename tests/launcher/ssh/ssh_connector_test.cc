#include "launcher/ssh/ssh_connector.hpp"

#include <array>
#include <set>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/read_until.hpp>

#include "base/error.hpp"
#include "tests/catch.hpp"
#include "tests/launcher/ssh/loop.hpp"
#include "tests/launcher/ssh/test_client.hpp"
#include "tests/launcher/ssh/test_listener.hpp"

using namespace runjob;
using namespace std::chrono_literals;
namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

std::string port_text(int port) {
  return "127.0.0.1 port " + std::to_string(port);
}

asio::awaitable<void> open_and_close(SshConnector& connector, SshTarget target) {
  const RemoteMessage nothing;
  const std::unique_ptr<Channel> channel = co_await connector.open(std::move(target), "cat", nothing);
  channel->close();
}

}  // namespace

TEST_CASE("a command runs on a host, and its errors come line by line", "[ssh]") {
  TestSshd sshd;
  TestClient client;
  client.know(sshd);
  client.make_identity(sshd);
  CHECK(client.run(sshd.port(), "echo out; printf 'one\\ntwo' >&2; exit 3") == "out\n");
  CHECK(client.messages == std::vector<std::string>{"one", "two"});
}

TEST_CASE("the configuration says where a host is and how to log in", "[ssh]") {
  TestSshd sshd;
  TestClient client;
  client.make_identity(sshd);
  client.home.write(".ssh/known_hosts", known_hosts_line("alias", 22, sshd.host_key(), ""));
  client.host.name = "s1";
  client.config = "Host s*\n  HostName 127.0.0.1\n  HostKeyAlias alias\n  IdentityFile ~/.ssh/id_ed25519\n";
  CHECK(client.run(sshd.port(), "echo in") == "in\n");
}

TEST_CASE("an unknown host key is refused, or accepted and remembered", "[ssh]") {
  TestSshd sshd;
  TestClient client;
  client.make_identity(sshd);
  CHECK_THAT(client.error(sshd.port()),
             ContainsSubstring("127.0.0.1: its host key is not known: ED25519 " + sshd.host_key().fingerprint()));
  client.options.accept_new_host_keys = true;
  CHECK(client.run(sshd.port(), "echo in") == "in\n");
  client.options.accept_new_host_keys = false;
  CHECK(client.run(sshd.port(), "echo in") == "in\n");
}

TEST_CASE("a changed host key is refused before any key of ours is shown", "[ssh]") {
  TestSshd sshd;
  TestSshd other;
  TestClient client;
  client.make_identity(sshd);
  client.options.accept_new_host_keys = true;
  client.home.write(".ssh/known_hosts", known_hosts_line("127.0.0.1", sshd.port(), other.host_key(), ""));
  CHECK_THAT(client.error(sshd.port()),
             ContainsSubstring("127.0.0.1: its host key has changed: it is ED25519 " + sshd.host_key().fingerprint() +
                               ", not what " + client.home.path(".ssh/known_hosts") + " line 1 says"));
}

TEST_CASE("of a host with several keys the known one is asked for", "[ssh]") {
  TestSshd sshd({"ed25519", "ecdsa"});
  TestClient client;
  client.make_identity(sshd);
  client.know(sshd, {GENERATE("ed25519", "ecdsa")});
  CHECK(client.run(sshd.port(), "echo in") == "in\n");
}

TEST_CASE("a host that libssh2 has no algorithm in common with is for ssh", "[ssh]") {
  TestSshd sshd({"ed25519"}, "KexAlgorithms sntrup761x25519-sha512@openssh.com");
  TestClient client;
  client.know(sshd);
  client.make_identity(sshd);
  CHECK_THAT(client.error(sshd.port()),
             ContainsSubstring("ssh: libssh2 ") && ContainsSubstring("no way of exchanging keys in common"));
}

TEST_CASE("a host that needs ssh is not even asked", "[ssh]") {
  TestClient client;
  const TestListener listener(client.context, "", TestListener::Then::kWait);
  client.config = "ProxyJump gate";
  CHECK(client.error(listener.port()) == "ssh: ProxyJump (config line 1)");
  CHECK(listener.accepted() == 0);
}

TEST_CASE("a name that is not known, and a port where nobody listens, say so", "[ssh]") {
  TestClient client;
  client.host.name = std::string(64, 'a');
  CHECK_THAT(client.error(22), ContainsSubstring("aaaaaaaa: ") && ContainsSubstring("; check the host list, "));
  client.host.name = "127.0.0.1";
  const ClosedPort closed(client.context);
  CHECK(client.error(closed.port()) == "127.0.0.1: " + port_text(closed.port()) +
                                           ": Connection refused; check that the host is up and that sshd listens on "
                                           "that port (-p)");
}

TEST_CASE("a host that does not answer is given up when its time is up", "[ssh]") {
  TestClient client;
  client.options.connect_timeout = 200ms;
  SECTION("because packets are dropped") {
    const SilentPort silent(client.context);
    CHECK(client.error(silent.port()) == "127.0.0.1: " + port_text(silent.port()) +
                                             " does not answer within 0.2 s; check that it is up and that no firewall "
                                             "drops the port, or give a longer --connect-timeout");
  }
  SECTION("because it says nothing") {
    const TestListener listener(client.context, "", TestListener::Then::kWait);
    CHECK(client.error(listener.port()) == "127.0.0.1: " + port_text(listener.port()) +
                                               " accepts connections, but does not speak SSH within 0.2 s; check that "
                                               "sshd is what listens there, and the load of the host");
  }
  SECTION("because it stops in the middle of its greeting") {
    const TestListener listener(client.context, "SSH-2.0-Open", TestListener::Then::kWait);
    CHECK_THAT(client.error(listener.port()), ContainsSubstring("does not speak SSH within 0.2 s"));
  }
}

TEST_CASE("what is no SSH server is not taken for one", "[ssh]") {
  TestClient client;
  SECTION("a flood") {
    const TestListener listener(client.context, std::string(10'000, 'x') + "\n", TestListener::Then::kRepeat);
    CHECK_THAT(client.error(listener.port()), ContainsSubstring(port_text(listener.port()) + " does not speak SSH: ") &&
                                                  ContainsSubstring("; it says 'xxx") &&
                                                  ContainsSubstring("; check that sshd is what listens"));
  }
  SECTION("garbage after a greeting") {
    const TestListener listener(client.context, "SSH-2.0-x\r\n" + std::string(1000, '\xff'), TestListener::Then::kWait);
    CHECK_THAT(client.error(listener.port()), ContainsSubstring(port_text(listener.port()) + " does not speak SSH: "));
  }
  SECTION("a web server") {
    const TestListener listener(client.context, "HTTP/1.1 400 Bad Request\r\n\r\n", TestListener::Then::kHangUp);
    CHECK_THAT(client.error(listener.port()), ContainsSubstring("does not speak SSH: ") &&
                                                  ContainsSubstring("; it says 'HTTP/1.1 400 Bad Request'; check"));
    CHECK(listener.accepted() == 1);
  }
  SECTION("zeros") {
    const TestListener listener(client.context, std::string(1000, '\0'), TestListener::Then::kWait);
    CHECK_THAT(client.error(listener.port()), ContainsSubstring(port_text(listener.port()) + " does not speak SSH: "));
  }
}

TEST_CASE("a host that hangs up is tried five times, and then told of", "[ssh]") {
  TestClient client;
  const std::string text = GENERATE("", "SSH-2.0-x\r\n", "Exceeded MaxStartups\r\n");
  const TestListener listener(client.context, text, TestListener::Then::kHangUp);
  const std::string error = client.error(listener.port());
  CHECK_THAT(error, ContainsSubstring(port_text(listener.port()) + " hangs up before the login, 5 times in a row: "));
  CHECK((error.find("it says 'Exceeded MaxStartups'") != std::string::npos) == (text.substr(0, 8) == "Exceeded"));
  CHECK(listener.accepted() == 5);
}

TEST_CASE("a host with too many guests is tried again until there is room", "[ssh]") {
  TestSshd sshd({"ed25519"}, "MaxStartups 1:100:1");
  TestClient client;
  client.know(sshd);
  client.make_identity(sshd);
  tcp::socket guest(client.context);
  guest.connect({asio::ip::address_v4::loopback(), static_cast<unsigned short>(sshd.port())});
  std::string greeting;
  asio::read_until(guest, asio::dynamic_buffer(greeting), '\n');  // it has the only place now
  std::thread leave([&] {
    sshd.wait_for_log("MaxStartups");
    boost::system::error_code ignored;
    guest.shutdown(tcp::socket::shutdown_both, ignored);
  });
  CHECK(client.run(sshd.port(), "echo in") == "in\n");
  leave.join();
}

TEST_CASE("many connections share few places", "[ssh]") {
  TestSshd sshd;
  TestClient client;
  client.know(sshd);
  client.make_identity(sshd);
  client.options.concurrency = 2;
  SshConnector connector(client.context.get_executor(), client.options);
  int opened = 0;
  for (int i = 0; i < 8; ++i) {
    asio::co_spawn(client.context, open_and_close(connector, client.target(sshd.port())),
                   [&](const std::exception_ptr& error) { opened += error ? 0 : 1; });
  }
  client.context.run();
  CHECK(opened == 8);
}

TEST_CASE("cancelling ends a connection in the making, wherever it is", "[ssh]") {
  TestClient client;
  const TestListener listener(client.context, "", TestListener::Then::kWait);
  const SilentPort silent(client.context);
  client.options.concurrency = 1;
  SshConnector connector(client.context.get_executor(), client.options);
  std::array<asio::cancellation_signal, 3> cancel;
  int ended = 0;
  const std::array<int, 3> ports = {listener.port(), silent.port(), listener.port()};
  for (std::size_t i = 0; i < cancel.size(); ++i) {
    asio::co_spawn(client.context, open_and_close(connector, client.target(ports[i])),
                   asio::bind_cancellation_slot(cancel[i].slot(), [&](const std::exception_ptr& error) {
                     CHECK(error);
                     ++ended;
                   }));
  }
  REQUIRE(run_until(client.context, [&] { return listener.accepted() == 1; }));
  for (int i = 0; i < 3; ++i) {
    cancel[static_cast<std::size_t>(i)].emit(asio::cancellation_type::terminal);
    REQUIRE(run_until(client.context, [&] { return ended == i + 1; }));
    client.context.poll();
  }
}

TEST_CASE("a loop that ends takes a connection in the making with it", "[ssh]") {
  TestClient client;
  bool ended = false;
  {
    asio::io_context context;
    const TestListener listener(context, "", TestListener::Then::kWait);
    SshConnector connector(context.get_executor(), client.options);
    for (int i = 0; i < 2; ++i) {
      asio::co_spawn(context, open_and_close(connector, client.target(listener.port())),
                     [&](const std::exception_ptr&) { ended = true; });
    }
    REQUIRE(run_until(context, [&] { return listener.accepted() == 2; }));
  }
  CHECK_FALSE(ended);
}
