#include "launcher/ssh/ssh_session.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/write.hpp>

#include "launcher/ssh/ssh_program_needed.hpp"
#include "tests/catch.hpp"
#include "tests/launcher/ssh/loop.hpp"
#include "tests/launcher/ssh/test_sshd.hpp"

using namespace runjob;
namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

asio::awaitable<long> shake_hands(SshSession& session) {
  const auto call = [&]() -> long { return libssh2_session_handshake(session.get(), session.wire().descriptor()); };
  const long result = co_await session.ready(call);
  co_return result;
}

}  // namespace

TEST_CASE("a session shakes hands with a real server and shows its key", "[ssh]") {
  TestSshd sshd;
  asio::io_context context;
  tcp::socket socket(context);
  socket.connect({asio::ip::address_v4::loopback(), static_cast<unsigned short>(sshd.port())});
  SshSession session(std::move(socket));
  session.prefer(LIBSSH2_METHOD_HOSTKEY, "new@example.org,ssh-ed25519,newer@example.org");
  session.prefer(LIBSSH2_METHOD_KEX, "ecdh-sha2-nistp384");
  REQUIRE(run_on(context, shake_hands(session)) == 0);
  CHECK(libssh2_session_methods(session.get(), LIBSSH2_METHOD_HOSTKEY) == std::string("ssh-ed25519"));
  CHECK(libssh2_session_methods(session.get(), LIBSSH2_METHOD_KEX) == std::string("ecdh-sha2-nistp384"));
  std::size_t size = 0;
  int type = 0;
  const char* key = libssh2_session_hostkey(session.get(), &size, &type);
  CHECK(PublicKey{std::string(key, size)} == sshd.host_key());
  CHECK_FALSE(session.disconnected());
}

TEST_CASE("algorithms of which libssh2 knows none are for ssh", "[unit]") {
  asio::io_context context;
  SshSession session{tcp::socket(context)};
  for (const char* names : {"new@example.org", "", ",", ",,x"}) {
    INFO(names);
    CHECK_THROWS_AS(session.prefer(LIBSSH2_METHOD_MAC_CS, names), SshProgramNeeded);
  }
}

TEST_CASE("a session whose other side hangs up has ended, and is freed without waiting", "[ssh]") {
  asio::io_context context;
  tcp::acceptor acceptor(context, {asio::ip::address_v4::loopback(), 0});
  tcp::socket ours(context);
  ours.connect(acceptor.local_endpoint());
  tcp::socket peer = acceptor.accept();
  SshSession session(std::move(ours));
  const std::string text = GENERATE("", "SSH-2.0-x\r\n", "Too many connections\r\n");
  asio::write(peer, asio::buffer(text));
  peer.close();
  CHECK_THROWS_AS(run_on(context, shake_hands(session)), ConnectionEnded);
  CHECK(session.wire().beginning() == text);
}
