#include "launcher/srun_task/step_head.hpp"

#include <csignal>
#include <functional>
#include <optional>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "launcher/channel/messages.hpp"
#include "launcher/srun_task/join_step.hpp"
#include "rendezvous/client.hpp"
#include "tests/catch.hpp"
#include "tests/launcher/redirected_output.hpp"

using namespace runjob;
using namespace std::chrono_literals;

namespace {

SlurmTask task(int rank, int size) {
  static int steps = 0;
  if (rank == 0) ++steps;
  return {fmt::format("{}.{}", ::getpid(), steps), rank, size, 0, "s1", "s1", {}};
}

/// A task of the step, with its connection to task 0.
class Task {
 public:
  Task(const SlurmTask& slurm, const Munge& munge) : joined_(join_step(slurm, munge, 1234, 30s)), key_(memory_file()) {
    const std::string text = joined_.welcome.key.hex() + '\n';
    if (::fchmod(key_.get(), 0600) != 0 ||
        ::write(key_.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
      throw std::runtime_error("cannot write the key");
    const std::string address = fmt::format("http://{}:{}", joined_.head, joined_.welcome.port);
    client_.emplace(address, slurm.rank, fmt::format("/proc/self/fd/{}", key_.get()));
  }

  void report(const char* what, const std::string& body) { client_->put(kStepScope, what, body); }
  void start(int pid) { report(kStepStarted, encode(Started{pid, {}, {}})); }
  void exit(int wait_status, bool stopped_by_us = false) {
    Exited exited;
    exited.wait_status = wait_status;
    exited.stopped_by_us = stopped_by_us;
    report(kStepExited, encode(exited));
  }
  /// Waits for the job's end.
  StepEnd end() {
    const auto value = client_->get(kStepScope, kStepEnd, 30s);
    return value ? parse_step_end(*value) : StepEnd{-1, 0};
  }
  rendezvous::Client& client() { return *client_; }
  const StepWelcome& welcome() const { return joined_.welcome; }

 private:
  JoinedStep joined_;
  UniqueFd key_;
  std::optional<rendezvous::Client> client_;
};

struct Outcome {
  int status = -1;
  std::string errors;
};

using Script = std::function<void(Task& task)>;

/// A rank that ends by itself.
Script ends_with(int wait_status) {
  return [wait_status](Task& task) {
    task.start(101);
    task.exit(wait_status);
  };
}

/// A rank that runs until the step ends, which sets `end`, and is then stopped.
Script runs_until(StepEnd& end, int signal = SIGTERM) {
  return [&end, signal](Task& task) {
    task.start(100);
    end = task.end();
    task.exit(signal, /*stopped_by_us=*/true);
  };
}

/// Runs a step of two tasks, each of which follows its script on a thread of its own: no assertions there.
Outcome run(const Script& first, const Script& second, bool continue_on_failure = false) {
  const Munge munge = Munge::load(FAKE_MUNGE);
  const SlurmTask slurm = task(0, 2);
  const UniqueFd errors = memory_file();
  Outcome outcome;
  std::vector<std::string> failures(2);
  {
    const Redirected redirected(STDERR_FILENO, errors.get());
    StepHead head({slurm, "train", 30s, 77ms, continue_on_failure}, munge);
    const auto play = [&](int rank, const Script& script) {
      SlurmTask its = slurm;
      its.rank = rank;
      try {
        Task task(its, munge);
        script(task);
      } catch (const std::exception& error) {
        failures[static_cast<std::size_t>(rank)] = error.what();
      }
    };
    std::thread other([&] { play(1, second); });
    play(0, first);
    other.join();
    if (failures == std::vector<std::string>(2)) outcome.status = head.wait();
  }
  CHECK(failures == std::vector<std::string>(2));
  outcome.errors = contents(errors);
  return outcome;
}

}  // namespace

TEST_CASE("the tasks of a step get their places and one key, and all that end well give 0", "[net]") {
  std::vector<rendezvous::JoinReply> places(2);
  std::vector<Environment> variables(2);
  const auto script = [&](Task& task) {
    task.start(100);
    const rendezvous::JoinReply place = task.client().join(30s);
    places[static_cast<std::size_t>(place.rank)] = place;
    variables[static_cast<std::size_t>(place.rank)] = task.welcome().variables;
    task.exit(0);
  };
  const Outcome outcome = run(script, script);
  CHECK(outcome.status == 0);
  CHECK(outcome.errors.empty());
  CHECK(places[1].rank == 1);
  CHECK(places[1].size == 2);
  CHECK(places[1].local_rank == 1);
  CHECK(variables[1].at("MASTER_ADDR") == "127.0.0.1");
  CHECK(variables[1].at("MASTER_PORT") == "1234");
}

TEST_CASE("a task that fails ends the others with its status, and is named", "[net]") {
  StepEnd end;
  const Outcome outcome = run(runs_until(end), ends_with(3 << 8));
  CHECK(end.status == 3);
  CHECK(end.grace_ms == 77);
  CHECK(outcome.status == 3);
  CHECK_THAT(outcome.errors, ContainsSubstring("rank 1 on s1 (pid 101) exited with status 3; stopped 1 other rank"));
}

TEST_CASE("a task that cannot start its rank ends the step", "[net]") {
  StepEnd end;
  const Outcome outcome = run(runs_until(end), [](Task& task) {
    task.report(kStepNotStarted, encode(StartFailed{StartFailed::Step::kExec, ENOENT, ""}));
  });
  CHECK(end.status == 127);
  CHECK(outcome.status == 127);
  CHECK_THAT(outcome.errors, ContainsSubstring("s1: command not found: train"));
}

TEST_CASE("a step that continues on failures lets the other tasks end by themselves", "[net]") {
  const Outcome outcome = run(ends_with(0), ends_with(3 << 8), /*continue_on_failure=*/true);
  CHECK(outcome.status == 3);
}

TEST_CASE("an interrupt that a task reports ends the step with 128 and its number", "[net]") {
  StepEnd end;
  const Outcome outcome = run(runs_until(end, SIGINT), [](Task& task) {
    task.start(101);
    task.report(kStepInterrupted, std::to_string(SIGINT));
    task.exit(SIGINT);
  });
  CHECK(end.status == 128 + SIGINT);
  CHECK(outcome.status == 128 + SIGINT);
}

TEST_CASE("a report that cannot be read is refused and changes nothing", "[net]") {
  const Outcome outcome = run(
      [](Task& task) {
        task.start(100);
        task.report(kStepExited, "garbage");
        task.exit(0);
      },
      ends_with(0));
  CHECK(outcome.status == 0);
  CHECK_THAT(outcome.errors, ContainsSubstring("refused a report of task 0: a control message that cannot be read"));
}

TEST_CASE("tasks that come in time are told which ones did not", "[net]") {
  const Munge munge = Munge::load(FAKE_MUNGE);
  const SlurmTask slurm = task(0, 3);
  StepHead head({slurm, "train", 50ms, 77ms, false}, munge);
  CHECK_THROWS_WITH(
      join_step(slurm, munge, 0, 30s),
      ContainsSubstring("tasks 1, 2 of step " + slurm.step + " have not come within the 0.05 s of --start-timeout"));
  CHECK(head.wait() == 125);
}

TEST_CASE("a task of another step is turned away, and the step waits on for its own", "[net]") {
  const Munge munge = Munge::load(FAKE_MUNGE);
  const SlurmTask slurm = task(0, 2);
  const UniqueFd errors = memory_file();
  std::string refusal;
  {
    const Redirected redirected(STDERR_FILENO, errors.get());
    StepHead head({slurm, "train", 30s, 77ms, false}, munge);
    SlurmTask stranger = slurm;
    stranger.size = 5;
    try {
      join_step(stranger, munge, 0, 30s);
    } catch (const Error& error) {
      refusal = error.what();
    }
  }
  CHECK_THAT(refusal, ContainsSubstring("task 0 on s1 has left"));
  CHECK_THAT(contents(errors), ContainsSubstring("refused a connection from 127.0.0.1 port "));
  CHECK_THAT(contents(errors), ContainsSubstring(": a task of step " + slurm.step));
}
