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

Environment environment_for(const LaunchRank& spec, const RankPlacement& placement, const Environment& common,
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
    check_descriptors(message.ranks.size());
    placements = place_ranks(message, current_environment());
  } catch (const Error& error) {
    const StartFailed failure{StartFailed::Step::kPlacement, 0, error.what()};
    for (const LaunchRank& spec : message.ranks)
      frames_.send_control(ToLauncher::kStartFailed, spec.rank, encode(failure));
  }
  for (std::size_t i = 0; i < placements.size(); ++i) {
    const LaunchRank& spec = message.ranks[i];
    start_rank(spec, placements[i], environment_for(spec, placements[i], common, rendezvous, host));
  }
  oom_kills_at_start_ = oom_kills();  // not before: it takes as long as starting a rank
}

void RankProcesses::start_rank(const LaunchRank& spec, const RankPlacement& placement, Environment environment) {
  Pipe output = make_large_pipe();
  Pipe error = make_large_pipe();
  Pipe input;
  const Launch& message = launch();
  if (spec.rank == message.stdin_rank) input = make_large_pipe();
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
  Rank& rank = ranks_[spec.rank];
  rank.message = &message;
  rank.launch = &spec;
  const ChildStart start = start_child(child);
  if (start.pid < 0) {
    const bool no_folder = start.error.step == ChildStartError::Step::kWorkingDirectory;
    const StartFailed failure{static_cast<StartFailed::Step>(start.error.step), start.error.error_number,
                              no_folder ? message.working_directory : ""};
    return frames_.send_control(ToLauncher::kStartFailed, spec.rank, encode(failure));
  }
  rank.pid = start.pid;
  frames_.send_control(ToLauncher::kStarted, spec.rank, encode(Started{start.pid, placement.cpus, placement.gpus}));
  forward(std::move(output.reader), Stream::kStdout, rank);
  forward(std::move(error.reader), Stream::kStderr, rank);
  if (!input.writer) return;
  rank.input = std::make_unique<InputPipe>(executor_, std::move(input.writer), spec.rank, frames_);
  asio::co_spawn(executor_, rank.input->run(), log_error);
}

void RankProcesses::forward(UniqueFd reader, Stream stream, Rank& rank) {
  std::unique_ptr<OutputPipe>& pipe = stream == Stream::kStderr ? rank.error : rank.output;
  pipe = std::make_unique<OutputPipe>(executor_, std::move(reader), rank.launch->rank, stream, launch().output_window,
                                      frames_);
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
        std::find_if(ranks_.begin(), ranks_.end(), [pid](const auto& each) { return each.second.pid == pid; });
    if (found == ranks_.end()) continue;  // an orphan
    report_exit(found->second, status, usage, stopped_by_us);
    if (launch().elastic_slots > 0 && status != 0) kill_leftovers(found->first);
  }
  return any;
}

void RankProcesses::report_exit(Rank& rank, int wait_status, const rusage& usage, bool stopped_by_us) {
  rank.pid = -1;
  Exited message = exited_of(wait_status, usage, stopped_by_us, oom_kills_at_start_);
  if (rank.input) {
    message.input_read = rank.input->bytes_read();
    rank.input->close();
  }
  frames_.send_control(ToLauncher::kExited, rank.launch->rank, encode(message));
}

void RankProcesses::signal(int rank, int number) const {
  for (const auto& [index, process] : ranks_) {
    if (process.pid > 0 && (rank < 0 || rank == index)) ::kill(-process.pid, number);
  }
}

void RankProcesses::add_output_credit(int rank, Stream stream, std::int64_t bytes) {
  const auto found = ranks_.find(rank);
  if (found == ranks_.end()) return;
  OutputPipe* pipe = stream == Stream::kStderr ? found->second.error.get() : found->second.output.get();
  if (pipe != nullptr) pipe->add_credit(bytes);
}

void RankProcesses::push_input(int rank, std::string bytes) {
  const auto found = ranks_.find(rank);
  if (found != ranks_.end() && found->second.input) found->second.input->push(std::move(bytes));
}

void RankProcesses::discard_output() {
  for (auto& [index, rank] : ranks_) {
    if (rank.output) rank.output->discard();
    if (rank.error) rank.error->discard();
  }
}

void RankProcesses::on_queue_shorter() {
  for (auto& [index, rank] : ranks_) {
    if (rank.output) rank.output->on_queue_shorter();
    if (rank.error) rank.error->on_queue_shorter();
  }
}

void RankProcesses::close_idle_output() {
  for (auto& [index, rank] : ranks_) {
    if (rank.output && rank.output->idle()) rank.output->close();
    if (rank.error && rank.error->idle()) rank.error->close();
  }
}

bool RankProcesses::any_running() const {
  return std::any_of(ranks_.begin(), ranks_.end(), [](const auto& each) { return each.second.pid != -1; });
}

bool RankProcesses::is_running(pid_t pid) const {
  return rank_of(pid) >= 0;
}

int RankProcesses::rank_of(pid_t pid) const {
  const auto found =
      std::find_if(ranks_.begin(), ranks_.end(), [pid](const auto& each) { return each.second.pid == pid; });
  return found == ranks_.end() ? -1 : found->first;
}

std::vector<std::pair<int, pid_t>> RankProcesses::running() const {
  std::vector<std::pair<int, pid_t>> result;
  for (const auto& [index, rank] : ranks_) {
    if (rank.pid > 0) result.emplace_back(index, rank.pid);
  }
  return result;
}

const LaunchRank* RankProcesses::find(int rank) const {
  const auto found = ranks_.find(rank);
  return found == ranks_.end() ? nullptr : found->second.launch;
}

}  // namespace runjob
