#include "runtime/collectives/shm/memory/handover.hpp"

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <future>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/error.hpp"
#include "runtime/collectives/shm/memory/segment.hpp"
#include "tests/catch.hpp"
#include "tests/temporary_directory.hpp"

using namespace runjob::runtime;
using runjob::Errc;
using runjob::Error;
using runjob::UniqueFd;

namespace {

WaitLimits within(std::chrono::milliseconds time, int cancel = -1) {
  return {std::chrono::steady_clock::now() + time, cancel};
}
const auto kLong = std::chrono::seconds(60);

UniqueFd connect_to(const std::string& path) {
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    throw std::runtime_error("connect");
  }
  return socket;
}

/// Until the other side has closed the connection.
bool is_dropped(const UniqueFd& socket) {
  pollfd event{socket.get(), POLLIN, 0};
  char byte = 0;
  return ::poll(&event, 1, 60000) == 1 && ::recv(socket.get(), &byte, 1, 0) <= 0;
}

std::string failure_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("every rank gets the descriptor, and the socket's file goes", "[runtime][net]") {
  const runjob::TemporaryDirectory directory;
  Handover handover(directory.path());
  const std::string path = handover.path();
  CHECK(path.starts_with(directory.path() + "/shm-"));
  const Segment segment = Segment::create(4096);
  auto served = std::async(std::launch::async, [&] { handover.serve(segment.descriptor(), 3, within(kLong)); });
  for (const int rank : {2, 1}) {
    const Segment other = Segment::attach(receive_descriptor(path, handover.token(), rank, within(kLong)), 4096);
    *static_cast<char*>(segment.data()) = static_cast<char>(rank);
    CHECK(*static_cast<char*>(other.data()) == rank);
  }
  served.get();
  CHECK(std::filesystem::is_empty(directory.path()));
}

TEST_CASE("strangers are dropped or ignored and hold up nobody", "[runtime][net]") {
  const runjob::TemporaryDirectory directory;
  Handover handover(directory.path());
  const std::string path = handover.path();
  const Segment segment = Segment::create(4096);
  const UniqueFd silent = connect_to(path), talker = connect_to(path), hasty = connect_to(path);
  const std::string garbage(4000, 'x');
  REQUIRE(::send(talker.get(), garbage.data(), garbage.size(), MSG_NOSIGNAL) > 0);
  REQUIRE(::shutdown(hasty.get(), SHUT_WR) == 0);
  auto served = std::async(std::launch::async, [&] { handover.serve(segment.descriptor(), 2, within(kLong)); });
  CHECK(is_dropped(talker));
  CHECK(is_dropped(hasty));
  CHECK(failure_of([&] { receive_descriptor(path, std::string(16, 'x'), 1, within(kLong)); }) ==
        "sharing memory: rank 0 closed the connection");
  CHECK(failure_of([&] { receive_descriptor(path, handover.token(), 7, within(kLong)); }) ==
        "sharing memory: rank 0 closed the connection");
  CHECK(receive_descriptor(path, handover.token(), 1, within(kLong)).get() >= 0);
  served.get();
}

TEST_CASE("who does not come is named when time is up", "[runtime][net]") {
  const runjob::TemporaryDirectory directory;
  Handover handover(directory.path());
  const Segment segment = Segment::create(4096);
  CHECK(failure_of([&] { handover.serve(segment.descriptor(), 4, within(std::chrono::milliseconds(10))); }) ==
        "sharing memory: no word from rank 1, 2, 3");
  CHECK(failure_of([&] {
          receive_descriptor(handover.path(), handover.token(), 1, within(std::chrono::milliseconds(10)));
        }) == "sharing memory: rank 0 does not answer");
}

TEST_CASE("a rank that sees other files gets the descriptor by a name without a file", "[runtime][net]") {
  const runjob::TemporaryDirectory directory;
  Handover handover(directory.path());
  REQUIRE(handover.name().starts_with("@runjob-"));
  const Segment segment = Segment::create(4096);
  auto served = std::async(std::launch::async, [&] { handover.serve(segment.descriptor(), 3, within(kLong)); });
  CHECK(receive_descriptor(handover.name(), handover.token(), 2, within(kLong)).get() >= 0);
  CHECK(receive_descriptor(handover.path(), handover.token(), 1, within(kLong)).get() >= 0);
  served.get();
  CHECK_THAT(failure_of([&] { receive_descriptor(handover.name(), handover.token(), 1, within(kLong)); }),
             ContainsSubstring("connecting to rank 0 at @runjob-"));
}

TEST_CASE("a descriptor without the second half of the token is not taken", "[runtime][net]") {
  const runjob::TemporaryDirectory directory;
  Handover handover(directory.path());
  const Segment segment = Segment::create(4096);
  std::string token = handover.token();
  token.back() = static_cast<char>(token.back() ^ 1);
  auto served = std::async(std::launch::async, [&] { handover.serve(segment.descriptor(), 2, within(kLong)); });
  CHECK(failure_of([&] { receive_descriptor(handover.name(), token, 1, within(kLong)); }) ==
        "sharing memory: rank 0 closed the connection");
  served.get();
}

TEST_CASE("both sides can be cancelled", "[runtime][net]") {
  const runjob::TemporaryDirectory directory;
  Handover handover(directory.path());
  const Segment segment = Segment::create(4096);
  const UniqueFd cancel(::eventfd(1, EFD_CLOEXEC));
  CHECK(failure_of([&] { handover.serve(segment.descriptor(), 2, within(kLong, cancel.get())); }) ==
        "ended while starting");
  CHECK(failure_of([&] { receive_descriptor(handover.path(), handover.token(), 1, within(kLong, cancel.get())); }) ==
        "ended while starting");
}

TEST_CASE("a socket whose path would be too long, or has no directory, is in one of its own", "[runtime][net]") {
  const std::string directory = GENERATE(std::string(), "/tmp/" + std::string(90, 'x'));
  std::string path;
  {
    Handover handover(directory);
    path = handover.path();
    CHECK(path.starts_with("/tmp/runjob-"));
    CHECK((std::filesystem::status(path).type() == std::filesystem::file_type::socket));
    CHECK((std::filesystem::status(std::filesystem::path(path).parent_path()).permissions() ==
           std::filesystem::perms::owner_all));
  }
  CHECK_FALSE(std::filesystem::exists(std::filesystem::path(path).parent_path()));
}

TEST_CASE("a directory that is not there, and a rank 0 that has gone, are errors", "[runtime][net]") {
  CHECK_THAT(failure_of([] { Handover handover("/nonexistent"); }),
             ContainsSubstring("listening on /nonexistent/shm-"));
  CHECK_THAT(failure_of([] { receive_descriptor("/nonexistent/x", "", 1, within(kLong)); }),
             ContainsSubstring("connecting to rank 0 at /nonexistent/x"));
}
