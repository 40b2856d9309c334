#include "launcher/agent/agent.hpp"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/log.hpp"
#include "launcher/agent/process_tree.hpp"
#include "launcher/child_process.hpp"
#include "launcher/rank_environment.hpp"

namespace runjob {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;

struct Pipe {
  UniqueFd reader;
  UniqueFd writer;
};

Pipe make_pipe() {
  constexpr int kBytes = 256 * 1024;  // fewer switches between a chatty rank and us; best effort
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw system_error("cannot make a pipe", errno);
  ::fcntl(ends[1], F_SETPIPE_SZ, kBytes);
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

/// For coroutines that end with the agent: what they throw means that the channel is gone.
void report(const std::exception_ptr& error) {
  if (!error) return;
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    log::debug("agent: {}", e.what());
  }
}

}  // namespace

Agent::Agent(Guarded guarded, Neighbours neighbours, Starter starter, const MakeChannel& make_channel)
    : channel_(make_channel(context_.get_executor())),
      writer_(context_.get_executor()),
      guarded_(std::move(guarded)),
      starter_(starter),
      heartbeat_(
          context_.get_executor(), [this] { writer_.send_control(FrameType::kHeartbeat, -1, {}); },
          [this] { on_channel_lost(); }),
      child_signals_(context_, SIGCHLD),
      end_signals_(context_, SIGTERM),
      grace_timer_(context_),
      told_timer_(context_),
      drain_timer_(context_),
      prober_(context_.get_executor(), writer_),
      facts_(host_facts(neighbours)),
      stacks_(context_.get_executor(), [this](int rank, const StackTrace& trace) {
        writer_.send_control(FrameType::kStackTrace, rank, encode(trace));
      }) {
  ::getrlimit(RLIMIT_NOFILE, &descriptor_limit_);
  const rlimit raised{descriptor_limit_.rlim_max, descriptor_limit_.rlim_max};  // each rank takes four of ours
  ::setrlimit(RLIMIT_NOFILE, &raised);
  if (starter_ == Starter::kLauncher)
    for (const int number : {SIGHUP, SIGINT}) end_signals_.add(number);
  writer_.on_bulk_sent = [this] { for_each_output([](OutputPipe& pipe) { pipe.on_queue_shorter(); }); };
}

/// The guard removes the folder of our sockets when we have ended, unless it has died.
Agent::~Agent() {
  rendezvous_.reset();
  std::error_code ignored;
  if (::getppid() != guarded_.guard) std::filesystem::remove_all(guarded_.directory, ignored);
}

void Agent::run() {
  end_signals_.async_wait([this](boost::system::error_code error, int) {
    if (error) return;
    const bool guard_died = ::getppid() != guarded_.guard;
    guard_died || starter_ == Starter::kLauncher ? on_channel_lost() : on_told_to_end();
  });
  wait_for_children();
  asio::co_spawn(context_, writer_.run(*channel_), [this](const std::exception_ptr& error) {
    report(error);
    if (error) return on_channel_lost();
    phase_ = Phase::kFinished;  // everything has been sent
    context_.stop();
  });
  asio::co_spawn(context_, read_frames(), [this](const std::exception_ptr& error) {
    report(error);
    on_channel_lost();
  });
  writer_.send_control(FrameType::kHello, -1, encode(facts_));
  context_.run();
}

asio::awaitable<void> Agent::read_frames() {
  const FrameParser::OnFrame handler = [this](const FrameHeader& header, std::string_view payload) {
    on_frame(header, payload);
  };
  for (;;) {
    const FrameParser::Space space = parser_.space();
    const std::size_t bytes = co_await channel_->read_some(asio::mutable_buffer(space.data, space.size));
    if (bytes == 0) co_return;
    heartbeat_.on_sign_of_life();
    parser_.consume(bytes, handler);
  }
}

void Agent::on_frame(const FrameHeader& header, std::string_view payload) {
  const auto rank = ranks_.find(header.rank);
  switch (header.type) {
    case FrameType::kLaunch:
      if (phase_ != Phase::kWaiting) throw Error(Errc::kProtocol, "a second launch");
      return launch(decode<Launch>(payload));
    case FrameType::kOutputCredit: {
      if (rank == ranks_.end()) return;
      OutputPipe* pipe = header.stream == Stream::kStderr ? rank->second.error.get() : rank->second.output.get();
      if (pipe != nullptr) pipe->add_credit(decode<Credit>(payload).bytes);
      return;
    }
    case FrameType::kInput:
      if (rank != ranks_.end() && rank->second.input) rank->second.input->push(std::string(payload));
      return;
    case FrameType::kSignal:
      return signal_ranks(header.rank, decode<Signal>(payload).number);
    case FrameType::kEnd:
      return on_end(decode<End>(payload));
    case FrameType::kReply: {
      RelayedReply message = decode<RelayedReply>(payload);
      const auto waiting = relayed_.extract(message.id);
      if (waiting) waiting.mapped()(std::move(message.response));
      return;
    }
    case FrameType::kHeartbeat:
      return heartbeat_.start();
    case FrameType::kPause:
      return heartbeat_.pause();
    case FrameType::kProbeListen:
    case FrameType::kProbeConnect:
    case FrameType::kProbeEnd:
      if (phase_ != Phase::kWaiting) return;  // it is ending
      return prober_.on_frame(header.type, payload);
    case FrameType::kStackTraces:
      return collect_stacks();
    case FrameType::kDumpPython:
      return stacks_.dump_python();
    case FrameType::kStackTrace:
    case FrameType::kHello:
    case FrameType::kStarted:
    case FrameType::kStartFailed:
    case FrameType::kOutput:
    case FrameType::kInputCredit:
    case FrameType::kExited:
    case FrameType::kJoined:
    case FrameType::kRequest:
    case FrameType::kFinished:
    case FrameType::kProbeListening:
    case FrameType::kProbeResults:
    case FrameType::kToldToEnd:
      break;
  }
  throw Error(Errc::kProtocol, "the launcher sent an agent's frame");
}

void Agent::on_channel_lost() {
  if (std::exchange(channel_lost_, true)) return;
  channel_->close();
  heartbeat_.pause();
  for_each_output([](OutputPipe& pipe) { pipe.discard(); });
  for (auto& [id, reply] : std::exchange(relayed_, {})) reply(rendezvous::error_response(410, "the launcher is gone"));
  end_ranks(SIGTERM, launch_.grace_ms);
  if (phase_ == Phase::kDraining) finish_if_drained();
}

/// By a batch system, which has told the ranks as well.
void Agent::on_told_to_end() {
  if (std::exchange(told_to_end_, true)) return;
  writer_.send_control(FrameType::kToldToEnd, -1, {});
  if (phase_ < Phase::kEnding) end_ranks(0, launch_.grace_ms);
}

/// A rank may save its work on SIGTERM, so it gets one: where a batch system ends the job, which may reach the launcher
/// first, from that. The launcher may say so twice: when an agent has been told, and when it has been itself.
void Agent::on_end(const End& end) {
  const bool gentle = end.signal == SIGTERM && end.grace_ms > 0;
  if (gentle && (told_to_end_ || others_may_tell_)) return;
  others_may_tell_ = gentle && end.told && starter_ == Starter::kBatchSystem && phase_ == Phase::kRunning;
  if (!others_may_tell_) return end_ranks(end.signal, end.grace_ms);
  end_ranks(0, end.grace_ms);
  const std::chrono::milliseconds grace(end.grace_ms);
  told_timer_.expires_after(std::min<std::chrono::milliseconds>(1s, grace / 2));
  told_timer_.async_wait([this, grace](boost::system::error_code error) {
    others_may_tell_ = false;
    if (!error && !told_to_end_ && phase_ == Phase::kEnding) end_ranks(SIGTERM, grace.count());
  });
}

void Agent::launch(Launch message) {
  prober_.stop();
  launch_ = std::move(message);
  phase_ = Phase::kRunning;
  guarded_.shared->grace_ms = launch_.grace_ms;
  rendezvous_ =
      std::make_unique<rendezvous::HttpServer>(context_.get_executor(), guarded_.directory + "/rendezvous.sock",
                                               [this](rendezvous::Request request, rendezvous::Reply reply) {
                                                 on_request(std::move(request), std::move(reply));
                                               });
  Environment common = host_environment(current_environment());
  for (const auto& [name, value] : launch_.environment) common[name] = value;
  common["PWD"] = launch_.working_directory;
  start_ranks(common);
  oom_kills_at_start_ = oom_kills();  // not before: it takes as long as starting a rank
  on_process_gone();                  // when none could be started
}

void Agent::start_ranks(const Environment& common) {
  std::vector<RankPlacement> placements;
  try {
    placements = place_ranks(launch_, current_environment());
  } catch (const Error& error) {
    const StartFailed failure{StartFailed::Step::kPlacement, 0, error.what()};
    for (const LaunchRank& spec : launch_.ranks)
      writer_.send_control(FrameType::kStartFailed, spec.rank, encode(failure));
    return;
  }
  for (std::size_t i = 0; i < placements.size(); ++i) start_rank(launch_.ranks[i], placements[i], common);
}

void Agent::start_rank(const LaunchRank& spec, const RankPlacement& placement, const Environment& common) {
  Pipe output = make_pipe();
  Pipe error = make_pipe();
  Pipe input;
  if (spec.rank == launch_.stdin_rank) input = make_pipe();
  ChildSpec child;
  child.command = launch_.command;
  child.environment = environment_for(spec, placement, common);
  child.cpus = placement.cpus;
  child.traceable = launch_.traceable;
  child.working_directory = launch_.working_directory;
  child.standard_input = input.reader.get();
  child.standard_output = output.writer.get();
  child.standard_error = error.writer.get();
  child.new_session = true;
  child.die_with_parent = true;
  child.descriptor_limit = descriptor_limit_;
  Rank& rank = ranks_[spec.rank];
  rank.launch = &spec;
  const ChildStart start = start_child(child);
  if (start.pid < 0) {
    const StartFailed failure{static_cast<StartFailed::Step>(start.error.step), start.error.error_number, ""};
    writer_.send_control(FrameType::kStartFailed, spec.rank, encode(failure));
    return;
  }
  rank.pid = start.pid;
  writer_.send_control(FrameType::kStarted, spec.rank, encode(Started{start.pid, placement.cpus}));

  const auto executor = context_.get_executor();
  const auto forward = [&](UniqueFd reader, Stream stream) {
    return std::make_unique<OutputPipe>(executor, std::move(reader), spec.rank, stream, launch_.output_window, writer_);
  };
  rank.output = forward(std::move(output.reader), Stream::kStdout);
  rank.error = forward(std::move(error.reader), Stream::kStderr);
  for (OutputPipe* pipe : {rank.output.get(), rank.error.get()}) {
    ++open_outputs_;
    asio::co_spawn(context_, pipe->run(), [this](const std::exception_ptr& failure) {
      report(failure);
      --open_outputs_;
      finish_if_drained();
    });
  }
  if (input.writer) {
    rank.input = std::make_unique<InputPipe>(executor, std::move(input.writer), spec.rank, writer_);
    asio::co_spawn(context_, rank.input->run(), report);
  }
}

Environment Agent::environment_for(const LaunchRank& spec, const RankPlacement& placement,
                                   const Environment& common) const {
  Environment result = common;
  result.merge(rank_defaults(facts_.cores, spec.place.local_size, facts_.free_port));  // keeps what is there
  result["RUNJOB_RENDEZVOUS"] = "unix:" + guarded_.directory + "/rendezvous.sock";
  if (!placement.visible_gpus.empty()) result["CUDA_VISIBLE_DEVICES"] = placement.visible_gpus;
  for (const auto& [name, value] : spec.environment) result[name] = value;
  return result;
}

void Agent::wait_for_children() {
  child_signals_.async_wait([this](boost::system::error_code error, int) {
    if (error) return;
    wait_for_children();  // before reaping, so that no signal falls between the two
    reap();
  });
}

void Agent::reap() {
  int status = 0;
  rusage usage{};
  bool gone = false;
  while (const pid_t pid = ::wait4(-1, &status, WNOHANG, &usage)) {
    if (pid < 0) break;
    gone = true;
    Rank* rank = running_rank(pid);
    if (rank == nullptr) continue;  // an orphan that had become ours
    rank->pid = -1;
    if (rank->input) rank->input->close();
    Exited message;
    message.wait_status = status;
    message.stopped_by_us = phase_ >= Phase::kEnding;
    message.out_of_memory = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && !message.stopped_by_us &&
                            oom_kills() > oom_kills_at_start_;
    message.max_rss_kib = usage.ru_maxrss;
    message.cpu_seconds = static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                          1e-6 * static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
    writer_.send_control(FrameType::kExited, rank->launch->rank, encode(message));
  }
  if (gone) on_process_gone();
}

Agent::Rank* Agent::running_rank(pid_t pid) {
  for (auto& [number, rank] : ranks_) {
    if (rank.pid == pid) return &rank;
  }
  return nullptr;
}

void Agent::on_process_gone() {
  if (phase_ == Phase::kWaiting || phase_ >= Phase::kDraining) return;
  for (const auto& [number, rank] : ranks_) {
    if (rank.pid != -1) return;
  }
  if (children().empty()) return drain();
  // The ranks have ended and left processes behind.
  if (phase_ == Phase::kRunning) end_ranks(SIGTERM, launch_.grace_ms);
  if (phase_ == Phase::kKilling) kill_ranks();
}

void Agent::collect_stacks() {
  std::vector<std::pair<int, pid_t>> running;
  for (const auto& [number, rank] : ranks_) {
    if (rank.pid > 0) running.emplace_back(number, rank.pid);
  }
  stacks_.collect(running, current_environment());
}

void Agent::signal_ranks(int rank, int number) {
  for (const auto& [index, process] : ranks_) {
    if (process.pid > 0 && (rank < 0 || rank == index)) ::kill(-process.pid, number);
  }
}

/// `signal`: 0 when they have it already.
void Agent::end_ranks(int signal, std::int64_t grace_ms) {
  if (phase_ == Phase::kWaiting) return drain();
  if (phase_ >= Phase::kKilling) return;
  if (grace_ms <= 0) return kill_ranks();
  phase_ = Phase::kEnding;
  if (signal != 0) signal_everything(signal);
  grace_timer_.expires_after(std::chrono::milliseconds(grace_ms));
  grace_timer_.async_wait([this](boost::system::error_code error) {
    if (!error) kill_ranks();
  });
}

void Agent::signal_everything(int signal) {
  told_timer_.cancel();
  signal_ranks(-1, signal);
  for (const pid_t pid : children()) {
    if (running_rank(pid) == nullptr) ::kill(pid, signal);
  }
  signal_ranks(-1, SIGCONT);  // a stopped process acts on no signal
}

void Agent::kill_ranks() {
  if (phase_ >= Phase::kDraining) return;
  phase_ = Phase::kKilling;
  signal_ranks(-1, SIGKILL);
  for (const pid_t pid : children()) ::kill(pid, SIGKILL);  // what these leave behind comes back here through reap()
}

void Agent::drain() {
  phase_ = Phase::kDraining;
  prober_.stop();
  grace_timer_.cancel();
  told_timer_.cancel();
  rendezvous_.reset();
  finish_if_drained();
  watch_drain();
}

void Agent::finish_if_drained() {
  if (phase_ != Phase::kDraining || open_outputs_ != 0) return;
  if (channel_lost_) return context_.stop();
  FrameHeader finished;
  finished.type = FrameType::kFinished;
  writer_.send_bulk(finished, nullptr, 0);
  writer_.finish();
}

/// A process that is not of the job may have been given a rank's pipe: it would keep it open for ever.
void Agent::watch_drain() {
  drain_timer_.expires_after(1s);
  drain_timer_.async_wait([this](boost::system::error_code error) {
    if (error || phase_ != Phase::kDraining) return;
    for_each_output([](OutputPipe& pipe) {
      if (pipe.idle()) pipe.close();
    });
    watch_drain();
  });
}

void Agent::on_request(rendezvous::Request request, rendezvous::Reply reply) {
  if (request.target == "/v1/join") return join(request, reply);
  if (channel_lost_) return reply(rendezvous::error_response(410, "the launcher is gone"));
  const std::int64_t id = next_request_++;
  relayed_.emplace(id, std::move(reply));
  writer_.send_control(FrameType::kRequest, -1, encode(RelayedRequest{id, std::move(request)}));
}

void Agent::join(const rendezvous::Request& request, const rendezvous::Reply& reply) {
  const nlohmann::json body = nlohmann::json::parse(request.body, nullptr, false);
  const bool well_formed = body.is_object() && body.contains("rank") && body["rank"].is_number_integer();
  const auto rank = well_formed ? ranks_.find(body["rank"].get<int>()) : ranks_.end();
  if (rank == ranks_.end()) return reply(rendezvous::error_response(400, "join: no such rank on this host"));
  writer_.send_control(FrameType::kJoined, rank->first, {});
  rendezvous::Response response;
  response.body = rendezvous::join_reply(rank->second.launch->place, launch_.topology);
  reply(std::move(response));
}

template <class Handler>
void Agent::for_each_output(Handler handler) {
  for (auto& [number, rank] : ranks_) {
    if (rank.output) handler(*rank.output);
    if (rank.error) handler(*rank.error);
  }
}

}  // namespace runjob
