#include "launcher/srun_task/run_task.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/parse.hpp"
#include "base/screen_text.hpp"
#include "base/secrets/secret.hpp"
#include "base/unique_handle.hpp"
#include "launcher/agent/host_facts.hpp"
#include "launcher/agent/placement/cpu_topology.hpp"
#include "launcher/agent/rank_end.hpp"
#include "launcher/channel/messages.hpp"
#include "launcher/network/interface_facts.hpp"
#include "launcher/processes/child_process.hpp"
#include "launcher/processes/process_handle.hpp"
#include "launcher/processes/rank_environment.hpp"
#include "launcher/srun_task/join_step.hpp"
#include "launcher/srun_task/step_head.hpp"
#include "launcher/srun_task/step_liveness.hpp"
#include "rendezvous/client.hpp"

namespace runjob {
namespace {

using namespace std::chrono_literals;

constexpr int kOwnFailureStatus = 125;  // docs/exit-status.md

volatile std::sig_atomic_t last_signal = 0;

void remember_signal(int number) {
  last_signal = number;
}

/// SLURM gives its signals to every process of a task, so the rank has them already.
void leave_signals_to_rank() {
  struct sigaction action {};
  action.sa_handler = remember_signal;
  action.sa_flags = SA_RESTART;
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) ::sigaction(number, &action, nullptr);
  for (const int number : {SIGUSR1, SIGUSR2, SIGQUIT, SIGPIPE}) ::signal(number, SIG_IGN);
}

/// The job's key in a file that only this user may read and that no disk holds: it goes with this process, however that
/// ends.
class KeyFile {
 public:
  explicit KeyFile(const rendezvous::JobKey& key) : file_(::memfd_create("runjob-key", MFD_CLOEXEC)) {
    std::string text = key.hex();  // appending would leave a copy in memory
    const bool is_written = file_ && ::fchmod(file_.get(), 0600) == 0 &&
                            ::write(file_.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
    const int error = errno;
    wipe(text);
    if (!is_written) throw system_error("cannot make a file in memory for the job's key", error);
  }

  std::string path() const { return fmt::format("/proc/{}/fd/{}", ::getpid(), file_.get()); }

 private:
  UniqueFd file_;
};

std::string http_address(const std::string& head, int port) {
  const bool ipv6 = head.find(':') != std::string::npos;
  return ipv6 ? fmt::format("http://[{}]:{}", head, port) : fmt::format("http://{}:{}", head, port);
}

/// By which address and interface the other nodes reach this one.
HostAddress own_address(const std::string& address) {
  if (address.empty()) return loopback_address();
  HostAddress own{address, address.find(':') != std::string::npos, "", {}};
  for (const NetworkInterface& each : network_facts().interfaces) {
    const bool has_it = std::any_of(each.addresses.begin(), each.addresses.end(),
                                    [&](const InterfaceAddress& its) { return its.address == address; });
    if (!has_it) continue;
    own.interface = each.name;
    own.interfaces = {each.name};
  }
  return own;
}

/// The cores that SLURM gives to each task, or else this task's share of the node.
int cores_for_task(const Environment& environment, int local_size) {
  const auto per_task = environment.find("SLURM_CPUS_PER_TASK");
  if (per_task != environment.end())
    return static_cast<int>(parse_integer(per_task->second, "SLURM_CPUS_PER_TASK", 1, 1 << 20));
  return threads_per_rank(usable_cores(), local_size);
}

Environment task_environment(const JobSpec& spec, const JoinedStep& joined, const std::string& key_file) {
  const Environment& variables = joined.welcome.variables;
  const auto local_size = static_cast<int>(
      parse_integer(variables.at("RUNJOB_LOCAL_SIZE"), "RUNJOB_LOCAL_SIZE", 1, std::numeric_limits<int>::max()));
  Environment result = spec.environment;
  result["PWD"] = spec.working_directory;
  Environment defaults = rank_defaults(cores_for_task(spec.environment, local_size), 1, 0);
  result.merge(defaults);  // keeps what is there
  for (const auto& [name, value] : variables) result[name] = value;
  for (const auto& [name, value] : network_variables(own_address(joined.welcome.address), spec.environment))
    result[name] = value;
  result["RUNJOB_RENDEZVOUS"] = http_address(joined.head, joined.welcome.port);
  result["RUNJOB_JOB_KEY_FILE"] = key_file;
  for (const auto& [name, value] : spec.runtime_variables) {
    for (const char* prefix : {"RUNJOB_", "HOROVOD_"}) result[prefix + name] = value;
  }
  for (const auto& [name, value] : spec.environment_overrides) result[name] = value;
  return result;
}

/// For the whole group, which SLURM makes of a node's tasks, from the one that leads it; we do not heed SIGTERM.
void signal_task(const ProcessHandle& rank, int number) {
  if (::getpgrp() == ::getpid()) {
    ::kill(0, number);
  } else {
    rank.signal(number);
  }
}

/// Asks task 0 for the job's end, and ends the rank then, or when task 0 is gone.
/// Threads  one of its own, which blocks for seconds; stopped() may be read at any time.
class EndWatch {
 public:
  /// `rank` has not been waited for.
  EndWatch(rendezvous::Client client, pid_t rank, std::chrono::milliseconds grace)
      : client_(std::move(client)), rank_(rank), grace_(grace) {}

  void run() {
    auto heard = std::chrono::steady_clock::now();
    for (;;) {
      try {
        const auto end = client_.get(kStepScope, kStepEnd, kStepPoll);
        heard = std::chrono::steady_clock::now();
        if (end) return stop(parse_step_end(*end));
      } catch (const Error& error) {
        if (std::chrono::steady_clock::now() - heard > kLostAfter) {
          log::error("task 0 of the step is gone ({}); ending this rank", one_line(error.what()));
          return stop({kOwnFailureStatus, grace_.count()});
        }
        std::this_thread::sleep_for(kRetry);
      }
    }
  }

  /// The job's status, once it has ended this rank.
  std::optional<int> stopped() const {
    const int status = status_;
    return status < 0 ? std::nullopt : std::optional<int>(status);
  }

 private:
  static constexpr auto kRetry = 1s;

  void stop(const StepEnd& end) {
    status_ = end.status;
    signal_task(rank_, SIGTERM);
    std::this_thread::sleep_for(std::chrono::milliseconds(end.grace_ms));
    rank_.signal(SIGKILL);
  }

  rendezvous::Client client_;
  const ProcessHandle rank_;  // task 0 outlives its rank, whose number may then be somebody else's
  const std::chrono::milliseconds grace_;
  std::atomic<int> status_{-1};
};

std::string failure_text(const SlurmTask& task, const ChildStartError& error, const std::string& command,
                         const std::string& directory) {
  if (error.step == ChildStartError::Step::kWorkingDirectory)
    return fmt::format("{}: cannot change to {} for rank {}: {}", task.node_name, directory, task.rank,
                       std::strerror(error.error_number));
  return fmt::format("{}: cannot start '{}' for rank {}: {}", task.node_name, command, task.rank,
                     start_error_text(error.error_number));
}

/// Reports to task 0, if it still listens.
void send_report(rendezvous::Client& client, const char* what, const std::string& body) {
  try {
    client.put(kStepScope, what, body);
  } catch (const Error& error) {
    log::info("cannot tell task 0: {}", one_line(error.what()));
  }
}

/// The tasks of a node share a process group. A task that ends its rank may have ended ours before this task has
/// received the end of the job.
std::optional<int> status_of_ended_job(rendezvous::Client& client) {
  try {
    const auto end = client.get(kStepScope, kStepEnd, 500ms);
    if (end) return parse_step_end(*end).status;
  } catch (const Error& error) {
    log::info("cannot ask task 0: {}", one_line(error.what()));
  }
  return std::nullopt;
}

/// Waits for the rank, and returns its wait status.
int wait_for(pid_t rank, rusage& usage) {
  int status = 0;
  while (::wait4(rank, &status, 0, &usage) < 0 && errno == EINTR) {
  }
  return status;
}

/// Ends this process as its rank has ended, without waiting for the thread that asks for the job's end.
[[noreturn]] void end_like(int wait_status) {
  if (WIFEXITED(wait_status)) ::_exit(WEXITSTATUS(wait_status));
  const int number = WTERMSIG(wait_status);
  const rlimit no_core{0, 0};  // the rank has left one, if any
  ::setrlimit(RLIMIT_CORE, &no_core);
  ::signal(number, SIG_DFL);
  ::raise(number);
  ::_exit(128 + number);
}

ChildStart start_rank(const JobSpec& spec, Environment environment) {
  ChildSpec child;
  child.command = spec.command;
  child.environment = std::move(environment);
  child.working_directory = spec.working_directory;
  child.standard_input = STDIN_FILENO;
  child.standard_output = STDOUT_FILENO;
  child.standard_error = STDERR_FILENO;
  child.die_with_parent = true;
  return start_child(child);
}

}  // namespace

int run_task(const JobSpec& spec) {
  const SlurmTask& task = *spec.slurm_task;
  leave_signals_to_rank();
  const Munge munge = Munge::load();
  std::unique_ptr<StepNames> names = open_step_names(task);
  std::optional<StepHead> head;
  if (task.rank == 0) {
    head.emplace(StepHead::Options{task, spec.command.front(), spec.start_timeout, spec.grace_period,
                                   spec.continue_on_failure, spec.runtime_options},
                 munge, names.get());
  }
  const int free_port = host_facts(Neighbours::kNone).free_port;
  const JoinedStep joined = join_step(task, munge, free_port, spec.start_timeout, names.get());
  names.reset();
  const KeyFile key_file(joined.welcome.key);
  const std::string address = http_address(joined.head, joined.welcome.port);
  rendezvous::Client client(address, task.rank, key_file.path());

  const ChildStart start = start_rank(spec, task_environment(spec, joined, key_file.path()));
  if (start.pid < 0) {
    log::error("{}", failure_text(task, start.error, spec.command.front(), spec.working_directory));
    const bool no_folder = start.error.step == ChildStartError::Step::kWorkingDirectory;
    send_report(client, kStepNotStarted,
                encode(StartFailed{static_cast<StartFailed::Step>(start.error.step), start.error.error_number,
                                   no_folder ? spec.working_directory : ""}));
    const bool missing = start.error.error_number == ENOENT || start.error.error_number == ENOTDIR;
    if (head) head->wait();
    return start.error.step != ChildStartError::Step::kExec ? kOwnFailureStatus : missing ? 127 : 126;
  }
  send_report(client, kStepStarted, encode(Started{start.pid, {}, {}}));
  EndWatch watch(rendezvous::Client(address, task.rank, key_file.path()), start.pid, spec.grace_period);
  std::thread([&watch] { watch.run(); }).detach();  // this process ends without it, see end_like()

  const std::int64_t oom_kills_at_start = oom_kills();
  rusage usage{};
  const int wait_status = wait_for(start.pid, usage);
  std::optional<int> stopped = watch.stopped();
  if (!stopped && last_signal != 0) stopped = status_of_ended_job(client);
  if (last_signal != 0 && !stopped) send_report(client, kStepInterrupted, std::to_string(last_signal));
  send_report(client, kStepExited, encode(exited_of(wait_status, usage, stopped.has_value(), oom_kills_at_start)));
  int job_status = stopped.value_or(0);
  if (head) job_status = std::max(job_status, head->wait());
  if (stopped || (head && wait_status == 0)) ::_exit(job_status);
  end_like(wait_status);
}

}  // namespace runjob
