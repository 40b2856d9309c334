#include "launcher/srun_task/pmi_names.hpp"

#include <functional>
#include <map>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

#include "base/unique_handle.hpp"
#include "tests/catch.hpp"

using namespace runjob;

// tests/python/slurm/test_slurm_steps.py has the same over a real srun.

namespace {

/// The other end of a task's socket, which answers each line, and hangs up at the first line without an answer.
class Daemon {
 public:
  explicit Daemon(std::function<std::string(const std::string&)> answer) : answer_(std::move(answer)) {
    int ends[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    own_.reset(ends[0]);
    task_.reset(ends[1]);
    thread_ = std::thread([this] { serve(); });
  }
  ~Daemon() {
    ::shutdown(own_.get(), SHUT_RDWR);
    thread_.join();
  }

  int task() const { return task_.get(); }
  /// The lines that came. Call it when the daemon has hung up.
  const std::vector<std::string>& lines() {
    char byte = 0;
    static_cast<void>(!::recv(task_.get(), &byte, 1, 0));
    return lines_;
  }

 private:
  void serve() {
    std::string line;
    char byte = 0;
    while (::recv(own_.get(), &byte, 1, 0) == 1) {
      line += byte;
      if (byte != '\n') continue;
      const std::string answer = answer_(line);
      lines_.push_back(std::exchange(line, ""));
      if (answer.empty()) break;
      static_cast<void>(!::send(own_.get(), answer.data(), answer.size(), MSG_NOSIGNAL));
    }
    ::shutdown(own_.get(), SHUT_RDWR);
  }

  std::function<std::string(const std::string&)> answer_;
  UniqueFd own_, task_;
  std::vector<std::string> lines_;
  std::thread thread_;
};

const char* const kInit = "cmd=init pmi_version=1 pmi_subversion=1\n";
const char* const kInitAnswer = "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n";

}  // namespace

TEST_CASE("a name that a task has published is found, and another one is not", "[net]") {
  std::map<std::string, std::string> answers = {
      {kInit, kInitAnswer},
      {"cmd=publish_name service=runjob-port port=4711\n", "cmd=publish_result info=ok\n"},
      {"cmd=lookup_name service=runjob-port\n", "cmd=lookup_result info=ok port=4711\n"},
      {"cmd=lookup_name service=other\n", "cmd=lookup_result info=fail\n"}};
  Daemon daemon([&](const std::string& line) { return answers[line]; });
  {
    auto names = PmiNames::open(daemon.task());
    REQUIRE(names);
    CHECK(names->publish("runjob-port", "4711"));
    CHECK(names->look_up("runjob-port") == "4711");
    CHECK_FALSE(names->look_up("other"));
  }
  CHECK(daemon.lines().back() == "cmd=finalize\n");
}

TEST_CASE("a descriptor without PMI has no names", "[net]") {
  int pipe[2];
  REQUIRE(::pipe(pipe) == 0);
  const UniqueFd reading(pipe[0]), writing(pipe[1]);
  CHECK_FALSE(PmiNames::open(-1));
  CHECK_FALSE(PmiNames::open(reading.get()));
  CHECK_FALSE(PmiNames::open(12'345));
  Daemon other([](const std::string&) { return "220 smtp\n"; });
  CHECK_FALSE(PmiNames::open(other.task()));
  Daemon refusing([](const std::string&) { return "cmd=response_to_init rc=-1\n"; });
  CHECK_FALSE(PmiNames::open(refusing.task()));
}

TEST_CASE("a daemon that hangs up, or sends no end of a line, is asked no more", "[net]") {
  const std::string answer = GENERATE(std::string(), std::string(5000, 'x'));
  Daemon daemon([&](const std::string& line) { return line == kInit ? kInitAnswer : answer; });
  auto names = PmiNames::open(daemon.task());
  REQUIRE(names);
  CHECK_FALSE(names->publish("runjob-port", "1"));
  CHECK_FALSE(names->look_up("runjob-port"));
}

TEST_CASE("a field of a line of PMI is its value", "[unit]") {
  CHECK(pmi_field("cmd=lookup_result info=ok port=4711\n", "port") == "4711");
  CHECK(pmi_field("cmd=lookup_result info=ok port=4711\n", "ort").empty());
  CHECK(pmi_field("cmd= info", "cmd").empty());
  CHECK(pmi_field("", "cmd").empty());
}
