#include "launcher/ssh/ssh_session.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/write.hpp>

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
  libssh2_session_method_pref(session.get(), LIBSSH2_METHOD_HOSTKEY, "ssh-ed25519");
  REQUIRE(run_on(context, shake_hands(session)) == 0);
  std::size_t size = 0;
  int type = 0;
  const char* key = libssh2_session_hostkey(session.get(), &size, &type);
  CHECK(PublicKey{std::string(key, size)} == sshd.host_key());
  CHECK_FALSE(session.disconnected());
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
