#include "launcher/job/call_relay.hpp"

#include <array>
#include <cstring>
#include <optional>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>

#include "base/error.hpp"
#include "tests/catch.hpp"

using namespace runjob;

namespace {

struct Record {
  std::int32_t rank = 0;
  std::string block;
  bool operator==(const Record&) const = default;
};

/// A relay, and the caller's end of it.
struct Relay {
  explicit Relay(const std::string& function) {
    const int file = ::memfd_create("function", 0);
    REQUIRE(::write(file, function.data(), function.size()) == static_cast<ssize_t>(function.size()));
    std::array<int, 2> ends{};
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) == 0);
    caller = UniqueFd(ends[0]);
    relay.emplace(context.get_executor(), CallDescriptors{file, ends[1]}, [this] { ++gone; });
  }

  /// What has been answered when the loop has nothing more to do at once.
  std::optional<rendezvous::Response> ask(const rendezvous::Request& request) {
    std::optional<rendezvous::Response> answer;
    relay->handle(request, [&answer](rendezvous::Response response) { answer = std::move(response); });
    context.poll();
    return answer;
  }

  Record read() {
    std::array<char, 8> header{};
    REQUIRE(::recv(caller.get(), header.data(), header.size(), MSG_WAITALL) == 8);
    Record record;
    std::uint32_t length = 0;
    std::memcpy(&record.rank, header.data(), 4);
    std::memcpy(&length, header.data() + 4, 4);
    record.block.resize(length);
    if (length != 0) REQUIRE(::recv(caller.get(), record.block.data(), length, MSG_WAITALL) == length);
    return record;
  }

  boost::asio::io_context context;
  UniqueFd caller;
  int gone = 0;
  std::optional<CallRelay> relay;
};

rendezvous::Request result_of(int rank, std::string block) {
  return {"POST", "/v1/call/result", std::move(block), rank};
}

}  // namespace

TEST_CASE("a rank reads the function in blocks, up to its end", "[unit]") {
  const std::string function = std::string(CallRelay::kBlockBytes, 'a') + "the rest";
  Relay relay(function);
  const auto from = [&relay](std::size_t offset) {
    return relay.ask({"GET", "/v1/call/function/" + std::to_string(offset), "", 1}).value().body.str();
  };
  CHECK(from(0) == std::string(CallRelay::kBlockBytes, 'a'));
  CHECK(from(CallRelay::kBlockBytes) == "the rest");
  CHECK(from(function.size()).empty());
  CHECK(from(function.size() + 100).empty());
}

TEST_CASE("results reach the caller with their rank, and the verdict comes last", "[unit]") {
  Relay relay("");
  CHECK(relay.ask(result_of(3, "three")).value().status == 200);
  CHECK(relay.ask(result_of(0, "")).value().status == 200);
  relay.relay->finish("{}");
  CHECK(relay.read() == Record{3, "three"});
  CHECK(relay.read() == Record{0, ""});
  CHECK(relay.read() == Record{-1, "{}"});
}

TEST_CASE("requests that are none of a call's are refused", "[unit]") {
  Relay relay("f");
  CHECK(relay.ask({"GET", "/v1/call/function/-1", "", 0}).value().status == 400);
  CHECK(relay.ask({"GET", "/v1/call/function/x", "", 0}).value().status == 400);
  CHECK(relay.ask({"GET", "/v1/call/function/%zz", "", 0}).value().status == 400);
  CHECK(relay.ask({"PUT", "/v1/call/function/0", "", 0}).value().status == 404);
  CHECK(relay.ask({"GET", "/v1/call/result", "", 0}).value().status == 404);
  CHECK(CallRelay::takes({"GET", "/v1/call/function/0", "", 0}));
  CHECK_FALSE(CallRelay::takes({"GET", "/v1/kv/call/function", "", 0}));
}

TEST_CASE("a rank is answered when the caller's socket has taken its block", "[unit]") {
  Relay relay("");
  const std::string large(16 << 20, 'x');
  std::optional<rendezvous::Response> answer;
  relay.relay->handle(result_of(1, large), [&](rendezvous::Response response) { answer = std::move(response); });
  relay.context.poll();
  REQUIRE_FALSE(answer);
  std::string received;
  std::array<char, 65536> part{};
  while (received.size() < large.size() + 8) {
    const ssize_t bytes = ::recv(relay.caller.get(), part.data(), part.size(), 0);
    REQUIRE(bytes > 0);
    received.append(part.data(), static_cast<std::size_t>(bytes));
    relay.context.poll();
  }
  CHECK(answer.value().status == 200);
  CHECK(received.substr(8) == large);
}

TEST_CASE("the caller's end is told once, and whoever waits or comes later is answered", "[unit]") {
  Relay relay("");
  std::optional<rendezvous::Response> waiting;
  relay.relay->handle(result_of(1, std::string(16 << 20, 'x')),
                      [&](rendezvous::Response response) { waiting = std::move(response); });
  relay.context.poll();
  REQUIRE_FALSE(waiting);
  relay.caller.reset();
  while (relay.gone == 0) relay.context.run_one();
  relay.context.poll();
  CHECK(waiting.value().status == 410);
  CHECK(relay.ask(result_of(0, "late")).value().status == 410);
  CHECK(relay.gone == 1);
  relay.relay->finish("{}");  // does not wait for anybody
}

TEST_CASE("descriptors that are not open are an error", "[unit]") {
  boost::asio::io_context context;
  CHECK_THROWS_WITH(CallRelay(context.get_executor(), {9999, 9998}, [] {}),
                    ContainsSubstring("the call's descriptors are not open"));
}
