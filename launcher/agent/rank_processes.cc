#include "launcher/agent/rank_processes.hpp"

#include <algorithm>
#include <cerrno>
#include <exception>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <fmt/format.h>

#include "base/descriptors.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "launcher/agent/host_facts.hpp"
#include "launcher/agent/leftovers.hpp"
#include "launcher/agent/rank_end.hpp"
#include "launcher/binding/gpu_choice.hpp"
#include "launcher/channel/exception_message.hpp"
#include "launcher/processes/child_process.hpp"
#include "launcher/processes/pipe.hpp"
#include "launcher/processes/rank_environment.hpp"

namespace runjob {
namespace {

namespace asio = boost::asio;

Pipe make_large_pipe() {
  constexpr int kBytes = 256 * 1024;  // fewer switches between a chatty rank and this process; best effort
  Pipe pipe = make_pipe();
  ::fcntl(pipe.writer.get(), F_SETPIPE_SZ, kBytes);
  return pipe;
}

/// A broken pipe of a rank ends with the rank, so its error is of interest to developers only.
void log_error(const std::exception_ptr& error) {
  if (const auto message = exception_message(error)) log::debug("agent: {}", *message);
}

Environment common_environment(const Launch& launch) {
  Environment common = host_environment(current_environment());
  for (const auto& [name, value] : launch.environment) common[name] = value;
  common["PWD"] = launch.working_directory;
  return common;
}

Environment environment_for(const LaunchProcess& spec, const RankPlacement& placement, const Environment& common,
                            const std::string& rendezvous, const Hello& host) {
  Environment result = common;
  result.merge(rank_defaults(host.cores, spec.place.local_size, host.free_port));  // keeps existing values
  result["RUNJOB_RENDEZVOUS"] = "unix:" + rendezvous;
  for (const auto& [name, value] : spec.environment) result[name] = value;
  if (placement.visible_gpus) choose_gpus(result, *placement.visible_gpus);
  return result;
}

/// Throws Error(kUnavailable) when this process may not open what the ranks take: their output and its input, and a
/// connection of each to the rendezvous. Without this check a rank could lose its output.
void check_descriptors(std::size_t ranks) {
  constexpr std::size_t kOfRank = 4, kWhileOneStarts = 6, kOthers = 2;
  rlimit limit{};
  const std::size_t count = open_descriptors().size();
  if (count == 0 || ::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  const std::size_t needed = count + ranks * kOfRank + kWhileOneStarts + kOthers;
  if (needed <= limit.rlim_cur) return;
  throw Error(Errc::kUnavailable,
              fmt::format("too few descriptors: {} ranks need {}, and the limit is {}; raise it there (ulimit -n)",
                          ranks, needed, limit.rlim_cur));
}

}  // namespace

RankProcesses::RankProcesses(asio::any_io_executor executor, FrameWriter<ToLauncher>& frames,
                             std::function<void()> on_output_closed)
    : executor_(std::move(executor)), frames_(frames), on_output_closed_(std::move(on_output_closed)) {
  raise_descriptor_limit();  // each rank takes four of ours
}

void RankProcesses::start(Launch launch, const std::string& rendezvous, const Hello& host) {
  const Launch& message = launches_.emplace_back(std::move(launch));
  const Environment common = common_environment(message);
  std::vector<RankPlacement> placements;
  try {
    check_descriptors(message.processes.size());
    placements = place_ranks(message, current_environment());
  } catch (const Error& error) {
    const StartFailed failure{StartFailed::Step::kPlacement, 0, error.what()};
    for (const LaunchProcess& spec : message.processes)
      frames_.send_control(ToLauncher::kStartFailed, spec.number, encode(failure));
  }
  for (std::size_t i = 0; i < placements.size(); ++i) {
    const LaunchProcess& spec = message.processes[i];
    start_process(spec, placements[i], environment_for(spec, placements[i], common, rendezvous, host));
  }
  oom_kills_at_start_ = oom_kills();  // not before: it takes as long as starting a rank
}

void RankProcesses::start_process(const LaunchProcess& spec, const RankPlacement& placement, Environment environment) {
  Pipe output = make_large_pipe();
  Pipe error = make_large_pipe();
  Pipe input;
  const Launch& message = launch();
  if (spec.number == message.stdin_process) input = make_large_pipe();
  ChildSpec child;
  child.command = message.command;
  child.environment = std::move(environment);
  child.cpus = placement.cpus;
  child.traceable = message.traceable;
  child.working_directory = message.working_directory;
  child.standard_input = input.reader.get();
  child.standard_output = output.writer.get();
  child.standard_error = error.writer.get();
  child.new_session = true;
  child.die_with_parent = true;
  Process& process = processes_[spec.number];
  process.message = &message;
  process.launch = &spec;
  const ChildStart start = start_child(child);
  if (start.pid < 0) {
    const bool no_folder = start.error.step == ChildStartError::Step::kWorkingDirectory;
    const StartFailed failure{static_cast<StartFailed::Step>(start.error.step), start.error.error_number,
                              no_folder ? message.working_directory : ""};
    return frames_.send_control(ToLauncher::kStartFailed, spec.number, encode(failure));
  }
  process.pid = start.pid;
  frames_.send_control(ToLauncher::kStarted, spec.number, encode(Started{start.pid, placement.cpus, placement.gpus}));
  forward(std::move(output.reader), Stream::kStdout, process);
  forward(std::move(error.reader), Stream::kStderr, process);
  if (!input.writer) return;
  process.input = std::make_unique<InputPipe>(executor_, std::move(input.writer), spec.number, frames_);
  asio::co_spawn(executor_, process.input->run(), log_error);
}

void RankProcesses::forward(UniqueFd reader, Stream stream, Process& process) {
  std::unique_ptr<OutputPipe>& pipe = stream == Stream::kStderr ? process.error : process.output;
  pipe = std::make_unique<OutputPipe>(executor_, std::move(reader), process.launch->number, stream,
                                      launch().output_window, frames_);
  ++open_outputs_;
  asio::co_spawn(executor_, pipe->run(), [this](const std::exception_ptr& error) {
    log_error(error);
    --open_outputs_;
    on_output_closed_();
  });
}

bool RankProcesses::reap(bool stopped_by_us) {
  int status = 0;
  rusage usage{};
  bool any = false;
  while (const pid_t pid = ::wait4(-1, &status, WNOHANG, &usage)) {
    if (pid < 0) break;
    any = true;
    const auto found =
        std::find_if(processes_.begin(), processes_.end(), [pid](const auto& each) { return each.second.pid == pid; });
    if (found == processes_.end()) continue;  // an orphan
    report_exit(found->second, status, usage, stopped_by_us);
    if (launch().elastic_slots > 0 && status != 0) kill_leftovers(found->first);
  }
  return any;
}

void RankProcesses::report_exit(Process& process, int wait_status, const rusage& usage, bool stopped_by_us) {
  process.pid = -1;
  Exited message = exited_of(wait_status, usage, stopped_by_us, oom_kills_at_start_);
  if (process.input) {
    message.input_read = process.input->bytes_read();
    process.input->close();
  }
  frames_.send_control(ToLauncher::kExited, process.launch->number, encode(message));
}

void RankProcesses::signal(int process, int number) const {
  for (const auto& [index, each] : processes_) {
    if (each.pid > 0 && (process < 0 || process == index)) ::kill(-each.pid, number);
  }
}

void RankProcesses::add_output_credit(int process, Stream stream, std::int64_t bytes) {
  const auto found = processes_.find(process);
  if (found == processes_.end()) return;
  OutputPipe* pipe = stream == Stream::kStderr ? found->second.error.get() : found->second.output.get();
  if (pipe != nullptr) pipe->add_credit(bytes);
}

void RankProcesses::push_input(int process, std::string bytes) {
  const auto found = processes_.find(process);
  if (found != processes_.end() && found->second.input) found->second.input->push(std::move(bytes));
}

void RankProcesses::discard_output() {
  for (auto& [index, process] : processes_) {
    if (process.output) process.output->discard();
    if (process.error) process.error->discard();
  }
}

void RankProcesses::on_queue_shorter() {
  for (auto& [index, process] : processes_) {
    if (process.output) process.output->on_queue_shorter();
    if (process.error) process.error->on_queue_shorter();
  }
}

void RankProcesses::close_idle_output() {
  for (auto& [index, process] : processes_) {
    if (process.output && process.output->idle()) process.output->close();
    if (process.error && process.error->idle()) process.error->close();
  }
}

bool RankProcesses::any_running() const {
  return std::any_of(processes_.begin(), processes_.end(), [](const auto& each) { return each.second.pid != -1; });
}

bool RankProcesses::is_running(pid_t pid) const {
  return number_of(pid) >= 0;
}

int RankProcesses::number_of(pid_t pid) const {
  const auto found =
      std::find_if(processes_.begin(), processes_.end(), [pid](const auto& each) { return each.second.pid == pid; });
  return found == processes_.end() ? -1 : found->first;
}

std::vector<std::pair<int, pid_t>> RankProcesses::running() const {
  std::vector<std::pair<int, pid_t>> result;
  for (const auto& [index, process] : processes_) {
    if (process.pid > 0) result.emplace_back(index, process.pid);
  }
  return result;
}

const LaunchProcess* RankProcesses::find(int process) const {
  const auto found = processes_.find(process);
  return found == processes_.end() ? nullptr : found->second.launch;
}

}  // namespace runjob
