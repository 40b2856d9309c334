#include "runtime/control/control_connect.hpp"

#include <future>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.hpp"
#include "tests/catch.hpp"

using namespace runjob::runtime;
using runjob::Errc;
using runjob::Error;
using runjob::UniqueFd;

namespace {

const std::vector<std::string> kNames = {"rank 0 on a", "rank 1 on a", "rank 2 on b"};

WaitLimits in(std::chrono::milliseconds time) {
  return {std::chrono::steady_clock::now() + time};
}

ControlChannel connect(std::uint16_t port, const std::string& token, int number) {
  return connect_to_member({"127.0.0.1", port, token}, number, "rank 0", in(std::chrono::seconds(30)));
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
  ControlChannel two = connect(listener.port, token, 2);
  two.send("early");
  ControlChannel one = connect(listener.port, token, 1);
  auto members = accept_members(listener, token, 0, kNames, in(std::chrono::seconds(30)));
  REQUIRE(members.size() == 3);
  CHECK_FALSE(members[0].is_open());
  REQUIRE(members[1].is_open());
  REQUIRE(members[2].is_open());
  CHECK(members[2].next_frame() == "early");
}

TEST_CASE("strangers are dropped: a wrong token, a wrong rank, noise, a second claim to a rank", "[runtime][net]") {
  const std::string token = make_token();
  const ControlListener listener = listen_for_members("127.0.0.1", 2);
  std::vector<ControlChannel> strangers;
  strangers.push_back(connect(listener.port, std::string(16, 'x'), 1));
  strangers.push_back(connect(listener.port, "", 1));
  strangers.push_back(connect(listener.port, token, 0));
  strangers.push_back(connect(listener.port, token, 2));
  strangers.push_back(connect(listener.port, token, -1));
  strangers.push_back(connect(listener.port, token, 1));  // the first with the token gets the place
  strangers.back().send(std::string(100000, 'z'));
  const auto members = accept_members(listener, token, 0, {"rank 0", "rank 1"}, in(std::chrono::seconds(30)));
  CHECK(members[1].is_open());
}

TEST_CASE("ranks that do not come are named", "[runtime][net]") {
  const ControlListener listener = listen_for_members("127.0.0.1", 3);
  const std::string token = make_token();
  const ControlChannel one = connect(listener.port, token, 1);
  try {
    accept_members(listener, token, 0, kNames, in(std::chrono::milliseconds(50)));
    FAIL("accepted");
  } catch (const Error& error) {
    CHECK(error.code() == Errc::kTimeout);
    CHECK(std::string(error.what()) == "these ranks did not connect to rank 0 on a in time: rank 2 on b");
  }
}

TEST_CASE("a coordinator that is not there is an error with its address", "[runtime][net]") {
  std::uint16_t port = 0;
  port = listen_for_members("127.0.0.1", 2).port;  // closed again
  CHECK_THROWS_WITH(connect(port, "t", 1), ContainsSubstring("connecting to rank 0 at 127.0.0.1 port " +
                                                             std::to_string(port) + ": Connection refused"));
  CHECK_THROWS_WITH(connect_to_member({"no-address", 1, "t"}, 1, "rank 0", in(std::chrono::seconds(30))),
                    ContainsSubstring("'no-address' is no numeric address"));
}

TEST_CASE("a member that does not begin with 0 waits for those above it, and can be told to stop", "[runtime][net]") {
  const std::string token = make_token();
  const ControlListener listener = listen_for_members("127.0.0.1", 3);
  const ControlChannel zero = connect(listener.port, token, 0), two = connect(listener.port, token, 2);
  const auto members = accept_members(listener, token, 1, kNames, in(std::chrono::seconds(30)));
  CHECK_FALSE(members[0].is_open());
  CHECK(members[2].is_open());
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const UniqueFd readable(ends[0]), closed(std::exchange(ends[1], -1));
  REQUIRE(::write(closed.get(), "x", 1) == 1);
  const WaitLimits limits{in(std::chrono::seconds(30)).deadline, readable.get()};
  CHECK_THROWS_WITH(accept_members(listener, token, 1, kNames, limits), "connecting was ended");
}
