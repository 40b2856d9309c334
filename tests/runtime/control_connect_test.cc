#include "runtime/engine/control_connect.hpp"

#include <future>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.hpp"
#include "runtime/engine/control_message.hpp"
#include "tests/catch.hpp"

using namespace runjob::runtime;
using runjob::Errc;
using runjob::Error;

namespace {

const std::vector<std::string> kHosts = {"a", "a", "b"};

Deadline in(std::chrono::milliseconds time) {
  return std::chrono::steady_clock::now() + time;
}

}  // namespace

TEST_CASE("tokens are 128 random bits", "[runtime][unit]") {
  CHECK(make_token().size() == 16);
  CHECK(make_token() != make_token());
}

TEST_CASE("members are told apart by their hello, whatever the order, and keep what they said after it",
          "[runtime][net]") {
  const std::string token = make_token();
  const ControlListener listener = listen_for_members("127.0.0.1", 3);
  ControlChannel two = connect_to_coordinator("127.0.0.1", listener.port, token, 2, in(std::chrono::seconds(30)));
  two.send("early");
  ControlChannel one = connect_to_coordinator("127.0.0.1", listener.port, token, 1, in(std::chrono::seconds(30)));
  auto members = accept_members(listener, token, kHosts, in(std::chrono::seconds(30)));
  REQUIRE(members.size() == 3);
  CHECK_FALSE(members[0].is_open());
  REQUIRE(members[1].is_open());
  REQUIRE(members[2].is_open());
  CHECK(members[2].next_frame() == "early");
}

TEST_CASE("strangers are dropped: a wrong token, a wrong rank, noise, a second claim to a rank", "[runtime][net]") {
  const std::string token = make_token();
  const ControlListener listener = listen_for_members("127.0.0.1", 2);
  const auto connect = [&](const std::string& t, int rank) {
    return connect_to_coordinator("127.0.0.1", listener.port, t, rank, in(std::chrono::seconds(30)));
  };
  std::vector<ControlChannel> strangers;
  strangers.push_back(connect(std::string(16, 'x'), 1));
  strangers.push_back(connect("", 1));
  strangers.push_back(connect(token, 0));
  strangers.push_back(connect(token, 2));
  strangers.push_back(connect(token, -1));
  strangers.push_back(connect(token, 1));  // the first with the token gets the place
  strangers.back().send(std::string(100000, 'z'));
  const auto members = accept_members(listener, token, {"a", "a"}, in(std::chrono::seconds(30)));
  CHECK(members[1].is_open());
}

TEST_CASE("ranks that do not come are named", "[runtime][net]") {
  const ControlListener listener = listen_for_members("127.0.0.1", 3);
  const std::string token = make_token();
  const ControlChannel one = connect_to_coordinator("127.0.0.1", listener.port, token, 1, in(std::chrono::seconds(30)));
  try {
    accept_members(listener, token, kHosts, in(std::chrono::milliseconds(50)));
    FAIL("accepted");
  } catch (const Error& error) {
    CHECK(error.code() == Errc::kTimeout);
    CHECK(std::string(error.what()) == "these ranks did not connect to rank 0 in time: rank 2 on b");
  }
}

TEST_CASE("a coordinator that is not there is an error with its address", "[runtime][net]") {
  std::uint16_t port = 0;
  port = listen_for_members("127.0.0.1", 2).port;  // closed again
  CHECK_THROWS_WITH(
      connect_to_coordinator("127.0.0.1", port, "t", 1, in(std::chrono::seconds(30))),
      ContainsSubstring("connecting to rank 0 at 127.0.0.1 port " + std::to_string(port) + ": Connection refused"));
  CHECK_THROWS_WITH(connect_to_coordinator("no-address", 1, "t", 1, in(std::chrono::seconds(30))),
                    ContainsSubstring("'no-address' is no numeric address"));
}
