#include "launcher/srun_task/join_step.hpp"

#include <arpa/inet.h>
#include <cerrno>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

#include <fmt/format.h>

#include "base/error.hpp"
#include "launcher/srun_task/step_head.hpp"
#include "tests/catch.hpp"
#include "tests/launcher/redirected_output.hpp"

using namespace runjob;
using namespace std::chrono_literals;

namespace {

SlurmTask step(const char* name) {
  return {fmt::format("{}.{}", ::getpid(), name), 0, 2, 0, "s1", "s1", {}};
}

sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

UniqueFd connected(int port) {
  UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in address = loopback(port);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) socket.reset();
  return socket;
}

std::string read_line(int socket) {
  std::string line;
  char c = 0;
  while (line.empty() || line.back() != '\n') {
    if (::read(socket, &c, 1) != 1) return line;
    line += c;
  }
  return line;
}

void send(int socket, std::string_view text) {
  static_cast<void>(!::send(socket, text.data(), text.size(), MSG_NOSIGNAL));
}

/// Somebody else on one of a step's ports. `talk` gets each connection; without it nobody accepts any.
/// Without `talk` a port that another test running now holds is as good as one of its own.
class Squatter {
 public:
  explicit Squatter(int port, std::function<void(int socket)> talk = {})
      : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), talk_(std::move(talk)) {
    const sockaddr_in address = loopback(port);
    const bool is_bound = ::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    if (!is_bound && !talk_ && errno == EADDRINUSE) return;
    REQUIRE(is_bound);
    REQUIRE(::listen(listener_.get(), 100) == 0);
    if (talk_) thread_ = std::thread([this] { serve(); });
  }
  ~Squatter() {
    ::shutdown(listener_.get(), SHUT_RDWR);
    if (thread_.joinable()) thread_.join();
  }

 private:
  void serve() {
    for (;;) {
      const UniqueFd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!socket) return;
      talk_(socket.get());
      kept_.emplace_back(::dup(socket.get()));
    }
  }

  UniqueFd listener_;
  std::function<void(int socket)> talk_;
  std::vector<UniqueFd> kept_;  // what is accepted stays open
  std::thread thread_;
};

/// Both tasks join; the texts of those that could not.
std::vector<std::string> join_both(const SlurmTask& slurm, const Munge& munge) {
  std::vector<std::string> failures(2);
  const auto join = [&](int rank) {
    SlurmTask task = slurm;
    task.rank = rank;
    try {
      join_step(task, munge, 1234, 60s);
    } catch (const std::exception& error) {
      failures[static_cast<std::size_t>(rank)] = error.what();
    }
  };
  std::thread other([&] { join(1); });
  join(0);
  other.join();
  return failures;
}

const std::vector<std::string> kNone(2);

}  // namespace

TEST_CASE("more silent strangers than task 0 has room for keep no task out", "[net]") {
  const Munge munge = Munge::load(FAKE_MUNGE);
  const SlurmTask slurm = step("silent");
  const StepHead head({slurm, "train", 8s, 77ms, false}, munge);  // strangers have ten seconds
  std::vector<UniqueFd> strangers;
  for (int i = 0; i < 100; ++i) {
    strangers.push_back(connected(step_ports(slurm).front()));
    REQUIRE(strangers.back());
    if (i < 60) CHECK(read_line(strangers.back().get()) == kStepGreeting);
  }
  CHECK(join_both(slurm, munge) == kNone);
}

TEST_CASE("a line without end is cut off, and the step goes on", "[net]") {
  const Munge munge = Munge::load(FAKE_MUNGE);
  const SlurmTask slurm = step("flood");
  const StepHead head({slurm, "train", 60s, 77ms, false}, munge);
  const UniqueFd stranger = connected(step_ports(slurm).front());
  REQUIRE(stranger);
  CHECK(read_line(stranger.get()) == kStepGreeting);
  send(stranger.get(), std::string(2 * kMaxStepHelloBytes, 'x'));
  CHECK(read_line(stranger.get()).empty());  // hung up on
  CHECK(join_both(slurm, munge) == kNone);
}

TEST_CASE("others on the step's ports, silent or with task 0's greeting, keep no task out", "[net]") {
  const Munge munge = Munge::load(FAKE_MUNGE);
  const SlurmTask slurm = step("held");
  const std::vector<int> ports = step_ports(slurm);
  std::vector<std::unique_ptr<Squatter>> squatters;
  const auto hold = [&](std::size_t which, std::function<void(int)> talk) {
    squatters.push_back(std::make_unique<Squatter>(ports.at(which), std::move(talk)));
  };
  for (std::size_t i = 0; i < 12; ++i) hold(i, {});
  hold(12, [](int socket) {
    send(socket, kStepGreeting);  // and never answers
    read_line(socket);
  });
  hold(13, [](int socket) {
    send(socket, kStepGreeting);
    read_line(socket);
    ::shutdown(socket, SHUT_RDWR);
  });
  hold(14, [](int socket) {
    send(socket, kStepGreeting);
    read_line(socket);
    send(socket, "MUNGE:forged:\n");
  });
  hold(15, [](int socket) { send(socket, "SSH-2.0-other\r\n"); });
  const StepHead head({slurm, "train", 60s, 77ms, false}, munge);
  CHECK(join_both(slurm, munge) == kNone);
}

TEST_CASE("a hello that somebody passes on is refused, and its task still joins", "[net]") {
  const Munge munge = Munge::load(FAKE_MUNGE);
  const SlurmTask slurm = step("relayed");
  const std::vector<int> ports = step_ports(slurm);
  const UniqueFd errors = memory_file();
  {
    const Squatter relay(ports.at(0), [&](int socket) {
      send(socket, kStepGreeting);
      const std::string hello = read_line(socket);
      const UniqueFd head = connected(ports.at(1));
      if (!head || read_line(head.get()) != kStepGreeting) return;
      send(head.get(), hello);
      read_line(head.get());
    });
    const Redirected redirected(STDERR_FILENO, errors.get());
    const StepHead head({slurm, "train", 60s, 77ms, false}, munge);
    const std::vector<std::string> failures = join_both(slurm, munge);
    CHECK(failures == kNone);
  }
  CHECK_THAT(contents(errors), ContainsSubstring(fmt::format("was for port {}: somebody passes it on", ports.at(0))));
}

TEST_CASE("when every port is held, the error names a user who holds one and the remedy", "[net]") {
  const Munge munge = Munge::load(FAKE_MUNGE);
  const SlurmTask slurm = step("none");
  const std::vector<int> ports = step_ports(slurm);
  std::vector<std::unique_ptr<Squatter>> squatters;
  for (const int port : ports) squatters.push_back(std::make_unique<Squatter>(port));
  CHECK_THROWS_WITH(
      StepHead({slurm, "train", 60s, 77ms, false}, munge),
      fmt::format("none of the 64 ports of step {} is free on s1: Address already in use, and user {} listens on port "
                  "{}; start it again, or let SLURM reserve ports with srun --resv-ports",
                  slurm.step, ::getuid(), ports.front()));
}
