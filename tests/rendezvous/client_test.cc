#include "rendezvous/client.hpp"

#include <algorithm>
#include <csignal>
#include <future>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "tests/catch.hpp"
#include "tests/rendezvous/eventually.hpp"
#include "tests/rendezvous/local_rendezvous.hpp"
#include "tests/rendezvous/raw_socket.hpp"

using namespace runjob;
using namespace runjob::rendezvous;
using namespace std::chrono_literals;

namespace {

/// What `call` throws; fails the test when it does not.
template <class Call>
Error error_of(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  return Error(Errc::kOk, "nothing was thrown");
}

}  // namespace

TEST_CASE("a client joins and learns its place", "[net]") {
  LocalRendezvous rendezvous({"a", "a", "b"}, 5s);
  Client client(rendezvous.address(), 2);
  const JoinReply reply = client.join(5s);
  JoinReply expected;
  expected.rank = 2;
  expected.size = 3;
  expected.local_rank = 0;
  expected.local_size = 1;
  expected.cross_rank = 1;
  expected.cross_size = 2;
  expected.hostname = "b";
  expected.hosts = {0, 0, 1};
  expected.hostnames = {"a", "b"};
  expected.start_timeout_seconds = 5;
  CHECK(reply == expected);
}

TEST_CASE("a client joins over TCP with the job's key", "[net]") {
  LocalRendezvous rendezvous(OverTcp(), {"a", "b"});
  Client client(rendezvous.address(), 1, rendezvous.key_file());
  CHECK(client.join(5s).hostname == "b");
  CHECK_THROWS_WITH(Client(rendezvous.address(), 1), ContainsSubstring("over a network the job's key is needed"));
  const TemporaryDirectory directory;
  JobKey::random().write_file(directory.path() + "/key");
  Client stranger(rendezvous.address(), 1, directory.path() + "/key");
  const Error refused = error_of([&] { stranger.join(5s); });
  CHECK(refused.code() == Errc::kAuth);
  CHECK_THAT(refused.what(), ContainsSubstring("is not signed with the job's key; is this the job's own rendezvous?"));
  CHECK(error_of([&] { Client(rendezvous.address(), 1, directory.path() + "/none"); }).code() == Errc::kAuth);
}

TEST_CASE("eight clients gather at once, a hundred times under one name", "[net]") {
  constexpr int kSize = 8;
  const auto hosts = std::vector<std::string>(kSize, "localhost");
  const bool over_tcp = GENERATE(false, true);
  LocalRendezvous rendezvous = over_tcp ? LocalRendezvous(OverTcp(), hosts) : LocalRendezvous(hosts);
  const std::optional<std::string> key_file =
      over_tcp ? std::optional<std::string>(rendezvous.key_file()) : std::nullopt;
  std::vector<std::future<std::string>> outcomes;
  for (int rank = 0; rank < kSize; ++rank) {
    outcomes.push_back(std::async(std::launch::async, [&rendezvous, key_file, rank]() -> std::string {
      Client client(rendezvous.address(), rank, key_file);
      for (int round = 0; round < 100; ++round) {
        const auto blobs = client.gather("addresses", std::to_string(round) + "/" + std::to_string(rank), 30s);
        for (int other = 0; other < kSize; ++other) {
          const std::string expected = std::to_string(round) + "/" + std::to_string(other);
          if (blobs.at(static_cast<std::size_t>(other)) != expected)
            return "wrong blob in round " + std::to_string(round);
        }
        client.barrier("step", 30s);
      }
      return "";
    }));
  }
  for (auto& outcome : outcomes) CHECK(outcome.get() == "");
}

TEST_CASE("a gather that runs out of time names who is missing", "[net]") {
  LocalRendezvous rendezvous({"s1", "s2"});
  Client client(rendezvous.address(), 0);
  client.join(5s);
  const Error error = error_of([&] { client.gather("x", "blob", 50ms); });
  CHECK(error.code() == Errc::kTimeout);
  CHECK_THAT(error.what(), ContainsSubstring("gather 'x' ran out of time after "));
  CHECK_THAT(error.what(), ContainsSubstring(" s: rank 1 on s2: process not started"));
}

TEST_CASE("values are bytes of any kind, and a get can wait for one", "[net]") {
  LocalRendezvous rendezvous({"a", "a"});
  Client writer(rendezvous.address(), 0), reader(rendezvous.address(), 1);
  const std::string zeros("\0a\0\xff\r\n", 6);
  CHECK(reader.get("scope", "key") == std::nullopt);
  auto waiting = std::async(std::launch::async, [&] { return reader.get("a/b c", zeros, 30s); });
  writer.put("a/b c", zeros, zeros);
  CHECK(waiting.get() == zeros);
  CHECK(reader.get("a/b c", zeros, Client::Milliseconds::max()) == zeros);
  CHECK(reader.get("a/b c", "none", -1s) == std::nullopt);
  writer.remove("a/b c", zeros);
  CHECK(reader.get("a/b c", zeros) == std::nullopt);
}

TEST_CASE("what can never work is refused before anything is sent", "[net]") {
  CHECK(error_of([] { Client("tcp:x", 0); }).code() == Errc::kUsage);
  Client client("unix:/nowhere", 0);
  const auto check = [&](const std::string& message, auto call) {
    const Error error = error_of(call);
    CHECK(error.code() == Errc::kInvalidArgument);
    CHECK(error.what() == message);
  };
  check("a name: expected 1 to 512 bytes, found 0", [&] { client.gather("", "", 1s); });
  check("a name: expected 1 to 512 bytes, found 513", [&] { client.barrier(std::string(513, 'x'), 1s); });
  check("a scope: expected 1 to 512 bytes, found 0", [&] { client.put("", "k", ""); });
  check("a key: expected 1 to 512 bytes, found 0", [&] { client.get("s", ""); });
  check("rendezvous unix:/nowhere: PUT /v1/kv/s/k: 16777217 bytes are over the limit of 16777216",
        [&] { client.put("s", "k", std::string(kMaxBodyBytes + 1, 'x')); });
}

TEST_CASE("what the service refuses is an error with its text", "[net]") {
  LocalRendezvous rendezvous({"a", "a"});
  Client client(rendezvous.address(), 0);
  const Error refused = error_of([&] { client.gather("x", "", 3, 0, 1s); });
  CHECK(refused.code() == Errc::kProtocol);
  CHECK_THAT(refused.what(),
             ContainsSubstring("rendezvous " + rendezvous.address() + ": POST /v1/gather/x?wait=1000ms"));
  CHECK_THAT(refused.what(), ContainsSubstring(": 400 count 3 is over the job's size of 2"));
  Client outsider(rendezvous.address(), 5);
  CHECK_THAT(error_of([&] { outsider.join(1s); }).what(), ContainsSubstring("rank 5 is not in this job of 2"));
  CHECK_THAT(client.status(), ContainsSubstring("\"size\":2"));
}

TEST_CASE("the end of the job ends every wait with its reason", "[net]") {
  LocalRendezvous rendezvous({"a", "a"});
  Client waiting(rendezvous.address(), 0);
  auto outcome = std::async(std::launch::async, [&] { return error_of([&] { waiting.barrier("x", 30s); }); });
  CHECK(eventually([&] { return nlohmann::json::parse(rendezvous.status())["open_gathers"] == 1; }));
  rendezvous.close("rank 1 on a ended with status 3");
  const Error error = outcome.get();
  CHECK(error.code() == Errc::kAborted);
  CHECK(error.what() == std::string("rank 1 on a ended with status 3"));
  CHECK(error_of([&] { waiting.put("s", "k", "v"); }).code() == Errc::kAborted);
}

TEST_CASE("a broken connection is noticed by nobody, also while a gather waits", "[net]") {
  LocalRendezvous rendezvous({"a", "a"});
  Client first(rendezvous.address(), 0), second(rendezvous.address(), 1);
  first.put("s", "k", "v");
  CHECK(break_connections(rendezvous.path()) == 1);
  CHECK(first.get("s", "k") == "v");
  auto outcome = std::async(std::launch::async, [&] { return first.gather("x", "from 0", 30s); });
  CHECK(eventually([&] { return nlohmann::json::parse(rendezvous.status())["open_gathers"] == 1; }));
  CHECK(break_connections(rendezvous.path()) == 1);
  CHECK(second.gather("x", "from 1", 30s) == std::vector<std::string>{"from 0", "from 1"});
  CHECK(outcome.get() == std::vector<std::string>{"from 0", "from 1"});
}

TEST_CASE("a client that is killed while it waits leaves no connection, and its blob stays", "[net]") {
  LocalRendezvous rendezvous({"a", "a"});
  const long before = open_descriptors();
  const pid_t child = ::fork();
  if (child == 0) {
    Client client(rendezvous.address(), 0);
    client.gather("x", "from 0", 60s);
    ::_exit(1);
  }
  CHECK(eventually([&] { return nlohmann::json::parse(rendezvous.status())["open_gathers"] == 1; }));
  REQUIRE(::kill(child, SIGKILL) == 0);
  REQUIRE(::waitpid(child, nullptr, 0) == child);
  CHECK(eventually([&] { return open_descriptors() == before; }));
  Client other(rendezvous.address(), 1);
  CHECK(other.gather("x", "from 1", 30s) == std::vector<std::string>{"from 0", "from 1"});
}

TEST_CASE("large blobs come through whole", "[net]") {
  LocalRendezvous rendezvous({"a", "a"});
  Client first(rendezvous.address(), 0), second(rendezvous.address(), 1);
  const std::string a(kMaxBodyBytes, 'a'), b(kMaxBodyBytes, '\0');
  auto outcome = std::async(std::launch::async, [&] { return first.gather("x", a, 60s); });
  const auto blobs = second.gather("x", b, 60s);
  CHECK((blobs == std::vector<std::string>{a, b}));
  CHECK((outcome.get() == blobs));
}
