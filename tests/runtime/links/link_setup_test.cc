#include "runtime/links/link_setup.hpp"

#include <future>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <stdexcept>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

#include "base/error.hpp"
#include "base/event_fd.hpp"
#include "runtime/links/listener.hpp"
#include "tests/catch.hpp"

using namespace runjob::runtime;
using runjob::Errc;
using runjob::Error;
using runjob::EventFd;
using runjob::UniqueFd;

namespace {

using Links = std::map<int, LinkStream>;

/// Members in this process, each with a listener.
struct Members {
  explicit Members(int count) {
    for (int member = 0; member < count; ++member) listeners.push_back(listen_for_members("127.0.0.1", count));
  }

  LinkPlan plan(int own, std::chrono::milliseconds limit = std::chrono::seconds(60)) const {
    LinkPlan plan;
    plan.own = own;
    plan.key.bytes().fill(7);
    plan.deadline = std::chrono::steady_clock::now() + limit;
    for (int member = 0; member < static_cast<int>(listeners.size()); ++member) {
      if (member == own) continue;
      plan.peers[member] = {listeners[static_cast<std::size_t>(member)].address, "rank " + std::to_string(10 * member)};
    }
    return plan;
  }

  std::future<Links> connect(const LinkPlan& plan) const {
    return std::async(std::launch::async, [plan, socket = listeners[static_cast<std::size_t>(plan.own)].socket.get()] {
      return connect_links(socket, plan);
    });
  }

  std::vector<Listener> listeners;
};

/// A stranger's connection to a listener.
UniqueFd knock(std::uint16_t port, in_addr_t from = INADDR_LOOPBACK) {
  UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(from);
  REQUIRE(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  REQUIRE(::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  return socket;
}

template <class Message>
void send_all(const LinkStream& link, const Message& message) {
  REQUIRE(::send(link.fd(), &message, sizeof message, MSG_NOSIGNAL) == sizeof message);
}

template <class Message>
bool receive_all(const LinkStream& link, Message& message) {
  pollfd readable{link.fd(), POLLIN, 0};
  ::poll(&readable, 1, -1);
  return ::recv(link.fd(), &message, sizeof message, MSG_WAITALL) == sizeof message;
}

template <class Message>
void send_all(const UniqueFd& socket, const Message& message) {
  REQUIRE(::send(socket.get(), &message, sizeof message, MSG_NOSIGNAL) == sizeof message);
}

template <class Message>
bool receive_all(const UniqueFd& socket, Message& message) {
  return ::recv(socket.get(), &message, sizeof message, MSG_WAITALL) == sizeof message;
}

Error error_of(std::future<Links> links) {
  try {
    links.get();
  } catch (const Error& error) {
    return error;
  }
  return Error(Errc::kOk, "");
}

}  // namespace

TEST_CASE("every pair of members gets one connection", "[runtime][net]") {
  const Members members(4);
  std::vector<std::future<Links>> all;
  for (int member = 0; member < 4; ++member) all.push_back(members.connect(members.plan(member)));
  std::vector<Links> links;
  for (auto& of : all) links.push_back(of.get());
  for (int a = 0; a < 4; ++a) {
    for (int b = 0; b < 4; ++b) {
      if (a == b) continue;
      const int sent = 10 * a + b;
      send_all(links[static_cast<std::size_t>(a)].at(b), sent);
    }
  }
  for (int a = 0; a < 4; ++a) {
    for (int b = 0; b < 4; ++b) {
      int got = -1;
      if (a != b) CHECK((receive_all(links[static_cast<std::size_t>(b)].at(a), got) && got == 10 * a + b));
    }
  }
}

TEST_CASE("members that only connect need no listener, and the first one need not know where they are",
          "[runtime][net]") {
  const Members members(3);
  LinkPlan of_first = members.plan(0);
  for (auto& [member, peer] : of_first.peers) peer.address = {};
  auto first = members.connect(of_first);
  std::vector<std::future<Links>> others;
  for (int member = 1; member < 3; ++member) {
    LinkPlan plan = members.plan(member);
    plan.peers = {{0, plan.peers.at(0)}};
    others.push_back(std::async(std::launch::async, [plan] { return connect_links(/*listener=*/-1, plan); }));
  }
  const Links links = first.get();
  for (int member = 1; member < 3; ++member) {
    const Links of_other = others[static_cast<std::size_t>(member) - 1].get();
    int got = -1;
    send_all(of_other.at(0), member);
    CHECK((receive_all(links.at(member), got) && got == member));
  }
}

TEST_CASE("strangers neither become links nor keep the members from each other", "[runtime][net]") {
  const Members members(2);
  const std::uint16_t port = members.listeners[0].address.port;
  std::vector<UniqueFd> strangers;
  for (int i = 0; i < 80; ++i) strangers.push_back(knock(port));  // silent, and before the member
  send_all(strangers[0], std::array<char, 200>{});                // not the protocol
  send_all(strangers[1], make_hello(1, 0));                       // the right words
  auto first = members.connect(members.plan(0));
  LinkAnswer answer;
  if (receive_all(strangers[1], answer)) {
    send_all(strangers[1], LinkProof{});  // but not the key
    char welcome = 0;
    CHECK_FALSE(receive_all(strangers[1], welcome));
  }
  auto second = members.connect(members.plan(1));
  const Links of_first = first.get(), of_second = second.get();
  send_all(of_second.at(0), 'x');
  char got = 0;
  CHECK((receive_all(of_first.at(1), got) && got == 'x'));
}

TEST_CASE("silent strangers beyond the bound are dropped, the oldest first", "[runtime][net]") {
  constexpr std::size_t kRoom = 64 + 1, kTooMany = 12;  // 64 strangers, and a place for each other member
  const Members members(2);
  std::vector<UniqueFd> strangers;
  for (std::size_t i = 0; i < kRoom + kTooMany; ++i) strangers.push_back(knock(members.listeners[0].address.port));
  auto first = members.connect(members.plan(0));
  for (std::size_t i = 0; i < kTooMany; ++i) {
    char got = 0;
    CHECK_FALSE(receive_all(strangers[i], got));  // which waits until the listener closes the connection
  }
  LinkAnswer answer;
  for (const std::size_t kept : {kTooMany, kTooMany + kRoom - 1}) {
    send_all(strangers[kept], make_hello(1, 0));
    CHECK(receive_all(strangers[kept], answer));
  }
  auto second = members.connect(members.plan(1));
  const Links of_first = first.get(), of_second = second.get();
  send_all(of_second.at(0), 'x');
  char got = 0;
  CHECK((receive_all(of_first.at(1), got) && got == 'x'));
}

TEST_CASE("a member that takes the place of another one is found when that one comes, and both addresses are named",
          "[runtime][net]") {
  const Members members(3);
  LinkPlan plan = members.plan(0);
  plan.purpose = "data between ranks";
  auto first = members.connect(plan);
  UniqueFd intruder = knock(members.listeners[0].address.port, /*127.0.0.2*/ 0x7f000002);
  const LinkHello hello = make_hello(1, 0);
  send_all(intruder, hello);
  LinkAnswer answer;
  REQUIRE(receive_all(intruder, answer));
  send_all(intruder, make_proof(plan.key, hello, answer));  // it has the key, as each member
  char welcome = 0;
  REQUIRE((receive_all(intruder, welcome) && welcome == kLinkWelcome));
  SECTION("while its connection lives") {
    auto second = members.connect(members.plan(1, std::chrono::seconds(2)));
    const Error error = error_of(std::move(first));
    CHECK(error.code() == Errc::kAuth);
    CHECK_THAT(error.what(), ContainsSubstring("two connections (data between ranks) come from rank 10, one from "
                                               "127.0.0.2") &&
                                 ContainsSubstring(" and one from 127.0.0.1: a process that holds the job's key"));
    static_cast<void>(error_of(std::move(second)));
  }
  SECTION("when it has ended, as after a connection that broke before the welcome") {
    intruder.reset();
    std::vector<Links> others;
    for (const int member : {1, 2}) {
      LinkPlan of_member = members.plan(member);
      of_member.peers = {{0, of_member.peers.at(0)}};
      others.push_back(members.connect(of_member).get());
    }
    const Links of_first = first.get();
    const Links& of_second = others.front();
    send_all(of_second.at(0), 'x');
    char got = 0;
    CHECK((receive_all(of_first.at(1), got) && got == 'x'));
  }
}

TEST_CASE("a member without the key is refused, and it is told which side lacks it", "[runtime][net]") {
  const Members members(2);
  LinkPlan wrong = members.plan(1);
  wrong.key.bytes().fill(8);
  auto first = members.connect(members.plan(0, std::chrono::milliseconds(300)));
  const Error refused = error_of(members.connect(wrong));
  CHECK(refused.code() == Errc::kAuth);
  CHECK_THAT(refused.what(), ContainsSubstring("connecting to rank 0 at 127.0.0.1"));
  CHECK(error_of(std::move(first)).code() == Errc::kTimeout);
}

TEST_CASE("members that encrypt get links that only they can read", "[runtime][net]") {
  const Members members(2);
  std::vector<LinkPlan> plans{members.plan(0), members.plan(1)};
  for (LinkPlan& plan : plans) plan.encrypts = true;
  auto first = members.connect(plans[0]), second = members.connect(plans[1]);
  Links of_first = first.get(), of_second = second.get();
  for (const auto& [from, to] :
       {std::pair(&of_first.at(1), &of_second.at(0)), std::pair(&of_second.at(0), &of_first.at(1))}) {
    CHECK(from->is_sealed());
    std::string text = "a gradient", got(text.size(), '\0'), seen(100, '\0');
    const iovec out{text.data(), text.size()}, in{got.data(), got.size()};
    REQUIRE(from->send({&out, 1}) == static_cast<ssize_t>(text.size()));
    pollfd readable{to->fd(), POLLIN, 0};
    ::poll(&readable, 1, -1);
    REQUIRE(::recv(to->fd(), seen.data(), seen.size(), MSG_PEEK) == static_cast<ssize_t>(text.size() + 18));
    CHECK(seen.find("gradient") == std::string::npos);
    CHECK(to->receive({&in, 1}) == static_cast<ssize_t>(text.size()));
    CHECK(got == text);
  }
}

TEST_CASE("when one member encrypts and another does not, both tell which and what to do", "[runtime][net]") {
  const Members members(2);
  const int encrypting = GENERATE(0, 1);
  std::vector<LinkPlan> plans{members.plan(0), members.plan(1)};
  plans[static_cast<std::size_t>(encrypting)].encrypts = true;
  plans[0].purpose = plans[1].purpose = "data between ranks";
  auto first = members.connect(plans[0]), second = members.connect(plans[1]);
  const std::vector<Error> errors{error_of(std::move(first)), error_of(std::move(second))};
  for (int member = 0; member < 2; ++member) {
    const Error& error = errors[static_cast<std::size_t>(member)];
    CHECK(error.code() == Errc::kMismatch);
    const std::string text = error.what();
    CHECK_THAT(text, ContainsSubstring(member == 0 ? "rank 10 at 127.0.0.1 " : "rank 0 at 127.0.0.1 "));
    CHECK_THAT(text, ContainsSubstring(member == encrypting ? " does not encrypt " : " encrypts "));
    CHECK_THAT(text, ContainsSubstring("--encrypt-data"));
  }
}

TEST_CASE("a member in a network namespace of its own is told so", "[runtime][net]") {
  if (::geteuid() != 0) {
    WARN("skipped: making a network namespace needs root");
    return;
  }
  Members members(2);
  const Error error = error_of(std::async(std::launch::async, [&] {
    if (::unshare(CLONE_NEWNET) != 0) throw std::runtime_error("unshare");  // of this thread only
    return connect_links(members.listeners[1].socket.get(), members.plan(1));
  }));
  CHECK(error.code() == Errc::kConnect);
  CHECK_THAT(error.what(),
             ContainsSubstring("connecting to rank 0 at 127.0.0.1 port") &&
                 ContainsSubstring(": Network is unreachable; no network interface of this process leads there"));
}

TEST_CASE("a listener that is gone, a member that does not come and a cancellation are named", "[runtime][net]") {
  Members members(2);
  SECTION("gone") {
    const LinkPlan plan = members.plan(1);
    members.listeners[0].socket.reset();
    const Error error = error_of(members.connect(plan));
    CHECK(error.code() == Errc::kConnect);
    CHECK_THAT(error.what(),
               ContainsSubstring("connecting to rank 0 at 127.0.0.1 port") && ContainsSubstring("Connection refused"));
  }
  SECTION("missing") {
    const Error error = error_of(members.connect(members.plan(0, std::chrono::milliseconds(100))));
    CHECK(error.code() == Errc::kTimeout);
    CHECK_THAT(error.what(), ContainsSubstring("rank 10 at 127.0.0.1"));
  }
  SECTION("missing, at an unknown address") {
    LinkPlan plan = members.plan(0, std::chrono::milliseconds(100));
    plan.peers.at(1).address = {};
    CHECK_THAT(error_of(members.connect(plan)).what(), ContainsSubstring("no connection in time with rank 10; a"));
  }
  SECTION("cancelled") {
    const EventFd cancel;
    LinkPlan plan = members.plan(0);
    plan.cancel = cancel.get();
    auto waiting = members.connect(plan);
    cancel.set();
    CHECK(error_of(std::move(waiting)).code() == Errc::kAborted);
  }
}
