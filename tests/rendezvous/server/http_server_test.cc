#include "rendezvous/server/http_server.hpp"

#include <fcntl.h>
#include <filesystem>
#include <optional>
#include <string>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>

#include "base/error.hpp"
#include "tests/catch.hpp"
#include "tests/rendezvous/eventually.hpp"
#include "tests/rendezvous/local_rendezvous.hpp"
#include "tests/rendezvous/raw_socket.hpp"
#include "tests/rendezvous/scripted_server.hpp"

using namespace runjob;
using namespace runjob::rendezvous;

namespace {

constexpr char kGet[] = "GET /v1/kv/s/k HTTP/1.1\r\n\r\n";

void refuse_all(Request, const Reply& reply) {
  reply(error_response(404, "nothing here"));
}

}  // namespace

TEST_CASE("a path that cannot be listened on is named with the reason", "[net]") {
  boost::asio::io_context context;
  const auto listen = [&](const std::string& path) { HttpServer(context.get_executor(), path, refuse_all); };
  CHECK_THROWS_WITH(listen("/nowhere/x.sock"), "listen on /nowhere/x.sock: No such file or directory");
  const std::string too_long = "/tmp/" + std::string(200, 'x');
  CHECK_THROWS_WITH(listen(too_long), "listen on " + too_long + ": File name too long");
  const LocalRendezvous rendezvous({"a"});
  CHECK_THROWS_WITH(listen(rendezvous.path()), "listen on " + rendezvous.path() + ": Address already in use");
}

TEST_CASE("the socket is there for its user only, and gone with the server", "[net]") {
  std::string path;
  {
    const LocalRendezvous rendezvous({"a"});
    path = rendezvous.path();
    struct stat info {};
    REQUIRE(::stat(path.c_str(), &info) == 0);
    CHECK((info.st_mode & 0777) == 0600);
  }
  CHECK_FALSE(std::filesystem::exists(path));
}

TEST_CASE("connections over the limit are told so", "[net]") {
  HttpServer::Limits limits;
  limits.connections = 2;
  LocalRendezvous rendezvous({"a"}, std::chrono::seconds(30), limits);
  std::optional<RawSocket> first = RawSocket::connect_to(rendezvous.path());
  RawSocket second = RawSocket::connect_to(rendezvous.path());
  CHECK(first->send(kGet));
  CHECK(second.send(kGet));
  CHECK_THAT(first->read_answer(), ContainsSubstring("404"));
  CHECK_THAT(second.read_answer(), ContainsSubstring("404"));
  RawSocket third = RawSocket::connect_to(rendezvous.path());
  CHECK(third.read_answer() == R"(503 {"error":"the limit of 2 connections is reached"})");
  CHECK(third.read_answer() == "hung up");
  first.reset();
  CHECK(eventually([&] {
    RawSocket again = RawSocket::connect_to(rendezvous.path());
    return again.send(kGet) && again.read_answer().starts_with("404");
  }));
}

TEST_CASE("another user's process is not admitted", "[net]") {
  if (::geteuid() != 0) {
    WARN("skipped: becoming another user needs root");
    return;
  }
  LocalRendezvous rendezvous({"a"});
  REQUIRE(::chmod(rendezvous.path().substr(0, rendezvous.path().rfind('/')).c_str(), 0755) == 0);
  REQUIRE(::chmod(rendezvous.path().c_str(), 0777) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setgid(65534) != 0 || ::setuid(65534) != 0) ::_exit(2);
    const bool refused = RawSocket::connect_to(rendezvous.path()).read_answer() ==
                         R"(403 {"error":"only processes of user 0 are admitted"})";
    ::_exit(refused ? 0 : 1);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

TEST_CASE("another user's process that holds the job's key is admitted", "[net]") {
  if (::geteuid() != 0) {
    WARN("skipped: becoming another user needs root");
    return;
  }
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/s";
  const JobKey key = JobKey::random();
  boost::asio::io_context context;
  const HttpServer server(context.get_executor(), path, refuse_all, HttpServer::Limits(), key);
  REQUIRE(::chmod(directory.path().c_str(), 0755) == 0);
  REQUIRE(::chmod(path.c_str(), 0777) == 0);
  std::thread thread([&] { context.run(); });
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setgid(65534) != 0 || ::setuid(65534) != 0) ::_exit(2);
    RawSocket stranger = RawSocket::connect_to(path);
    const bool refused = stranger.send(kGet) && stranger.read_answer().starts_with("401 ");
    RawSocket socket = RawSocket::connect_to(path);
    SignedRequests member(socket, key);
    const bool admitted = socket.send(member.next({"GET", "/", ""})) && socket.read_answer().starts_with("404 ");
    ::_exit(refused && admitted ? 0 : 1);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  RawSocket own = RawSocket::connect_to(path);  // needs none
  CHECK(own.send(kGet));
  CHECK(own.read_answer().starts_with("404 "));
  context.stop();
  thread.join();
}

TEST_CASE("no socket of the server is inherited by programs that the process starts", "[net]") {
  LocalRendezvous rendezvous({"a"});
  RawSocket socket = RawSocket::connect_to(rendezvous.path());
  CHECK(socket.send(kGet));
  CHECK_THAT(socket.read_answer(), ContainsSubstring("404"));
  int sockets = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;  // the iterator's own descriptor
    const std::string target = std::filesystem::read_symlink(entry.path(), gone).string();
    if (!target.starts_with("socket:")) continue;
    const int flags = ::fcntl(std::stoi(entry.path().filename()), F_GETFD);
    INFO(entry.path() << " " << target);
    if (std::stoi(entry.path().filename()) > 2) CHECK((flags & FD_CLOEXEC) != 0);
    ++sockets;
  }
  CHECK(sockets >= 3);
}

TEST_CASE("a reply may come after the server and its loop are gone", "[net]") {
  const TemporaryDirectory directory;
  Reply late;
  {
    boost::asio::io_context context;
    const HttpServer server(context.get_executor(), directory.path() + "/s", [&](Request, Reply reply) {
      late = std::move(reply);
      context.stop();
    });
    RawSocket socket = RawSocket::connect_to(directory.path() + "/s");
    CHECK(socket.send(kGet));
    context.run();
  }
  REQUIRE(late);
  late(Response{200, "text/plain", "too late"});
}

TEST_CASE("a handler that throws is an answer, not the end of the server", "[net]") {
  const TemporaryDirectory directory;
  boost::asio::io_context context;
  const HttpServer server(context.get_executor(), directory.path() + "/s",
                          [](Request, const Reply&) { throw Error(Errc::kBug, "broken handler"); });
  std::thread thread([&] { context.run(); });
  for (int i = 0; i < 2; ++i) {
    RawSocket socket = RawSocket::connect_to(directory.path() + "/s");
    CHECK(socket.send(kGet));
    CHECK(socket.read_answer() == R"(500 {"error":"broken handler"})");
  }
  context.stop();
  thread.join();
}
