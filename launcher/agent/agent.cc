#include "launcher/agent/agent.hpp"

#include <algorithm>
#include <filesystem>
#include <signal.h>
#include <unistd.h>
#include <utility>

#include <boost/asio/co_spawn.hpp>

#include "base/error.hpp"
#include "base/log.hpp"
#include "launcher/processes/process_tree.hpp"

namespace runjob {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;

/// Within this time a launcher takes the reason why the agent gives up, or does not take it at all.
constexpr auto kFailureLimit = 1s;

}  // namespace

Agent::Agent(Guarded guarded, Neighbours neighbours, Starter starter, const MakeChannel& make_channel)
    : channel_(make_channel(context_.get_executor())),
      writer_(context_.get_executor()),
      guarded_(std::move(guarded)),
      starter_(starter),
      heartbeat_(
          make_alarm(context_.get_executor()), [this] { writer_.send_control(ToLauncher::kHeartbeat, -1, {}); },
          [this] { on_channel_lost(); }),
      child_signals_(context_, SIGCHLD),
      end_signals_(context_, SIGTERM),
      grace_timer_(context_),
      batch_signal_timer_(context_),
      drain_timer_(context_),
      failure_timer_(context_),
      prober_(context_.get_executor(), writer_),
      facts_(host_facts(neighbours)),
      ranks_(context_.get_executor(), writer_, [this] { finish_if_drained(); }),
      rendezvous_(context_.get_executor(), ranks_, writer_),
      stacks_(context_.get_executor(),
              [this](int process, const StackTrace& trace) {
                writer_.send_control(ToLauncher::kStackTrace, process, encode(trace));
              }),
      stragglers_(context_.get_executor(), ranks_, [this](const Remaining& remaining) {
        writer_.send_control(ToLauncher::kRemaining, -1, encode(remaining));
      }) {
  if (starter_ == Starter::kLauncher)
    for (const int number : {SIGHUP, SIGINT}) end_signals_.add(number);
  writer_.on_bulk_sent = [this] { ranks_.on_queue_shorter(); };
}

/// The guard removes the folder of the sockets when this process has ended. A guard that has died cannot.
Agent::~Agent() {
  rendezvous_.close();
  std::error_code ignored;
  if (::getppid() != guarded_.guard) std::filesystem::remove_all(guarded_.directory, ignored);
}

void Agent::run() {
  end_signals_.async_wait([this](boost::system::error_code error, int) {
    if (!error) on_end_signal();
  });
  wait_for_children();
  asio::co_spawn(context_, writer_.run(*channel_),
                 [this](const std::exception_ptr& error) { on_writing_ended(error); });
  asio::co_spawn(context_, read_frames(), [this](const std::exception_ptr& error) { on_reading_ended(error); });
  writer_.send_control(ToLauncher::kHello, -1, encode(facts_));
  context_.run();
}

asio::awaitable<void> Agent::read_frames() {
  const FrameParser<ToAgent>::OnFrame handler = [this](const FrameHeader<ToAgent>& header, std::string_view payload) {
    on_frame(header, payload);
  };
  for (;;) {
    const FrameParser<ToAgent>::Space space = parser_.space();
    const std::size_t bytes = co_await channel_->read_some(asio::mutable_buffer(space.data, space.size));
    if (bytes == 0) co_return;
    heartbeat_.on_sign_of_life();
    parser_.consume(bytes, handler);
  }
}

void Agent::on_frame(const FrameHeader<ToAgent>& header, std::string_view payload) {
  switch (header.type) {
    case ToAgent::kLaunch:
      return launch(decode<Launch>(payload));
    case ToAgent::kOutputCredit:
      return ranks_.add_output_credit(header.process, header.stream, decode<Credit>(payload).bytes);
    case ToAgent::kInput:
      return ranks_.push_input(header.process, std::string(payload));
    case ToAgent::kSignal:
      return ranks_.signal(header.process, decode<Signal>(payload).number);
    case ToAgent::kEnd:
      return on_end(decode<End>(payload));
    case ToAgent::kReply:
      return rendezvous_.on_reply(decode<RelayedReply>(payload));
    case ToAgent::kHeartbeat:
      return heartbeat_.start();
    case ToAgent::kPause:
      return heartbeat_.pause();
    case ToAgent::kProbeListen:
    case ToAgent::kProbeConnect:
    case ToAgent::kProbeEnd:
      if (phase_ <= Phase::kRunning) prober_.on_frame(header.type, payload);
      return;
    case ToAgent::kNotice:
      return rendezvous_.on_notice(rendezvous::notice_from_json(std::string(payload)));
    case ToAgent::kStackTraces:
      return stacks_.collect(ranks_.running(), current_environment());
    case ToAgent::kDumpPython:
      return stacks_.dump_python();
  }
}

void Agent::on_writing_ended(const std::exception_ptr& error) {
  if (error) return on_channel_lost();
  phase_ = Phase::kFinished;  // everything has been sent
  context_.stop();
}

/// A channel that has broken needs no report, and could carry none.
void Agent::on_reading_ended(const std::exception_ptr& error) {
  try {
    if (error) std::rethrow_exception(error);
    on_channel_lost();
  } catch (const Error& failure) {
    if (failure.code() != Errc::kConnect) return give_up(failure.what());
    log::debug("agent: {}", failure.what());
    on_channel_lost();
  } catch (const std::exception& failure) {
    give_up(failure.what());
  }
}

/// Sends the reason before the channel ends: the launcher names it to the user.
void Agent::give_up(const std::string& reason) {
  writer_.send_control(ToLauncher::kFailed, -1, reason);
  writer_.when_idle([this] { on_channel_lost(); });
  failure_timer_.expires_after(kFailureLimit);
  failure_timer_.async_wait([this](boost::system::error_code error) {
    if (!error) on_channel_lost();
  });
}

void Agent::on_channel_lost() {
  if (std::exchange(channel_lost_, true)) return;
  failure_timer_.cancel();
  channel_->close();
  heartbeat_.pause();
  ranks_.discard_output();
  rendezvous_.on_launcher_lost();
  end_ranks(SIGTERM, ranks_.launch().grace_ms);
  if (phase_ == Phase::kDraining) finish_if_drained();
}

/// A batch system has signalled the ranks as well. Other signals come from the guard's death or from a person.
void Agent::on_end_signal() {
  const bool guard_died = ::getppid() != guarded_.guard || guarded_.shared->is_guard_lost;
  if (guard_died || starter_ == Starter::kLauncher) return on_channel_lost();
  if (std::exchange(signalled_by_batch_system_, true)) return;
  writer_.send_control(ToLauncher::kToldToEnd, -1, {});
  if (phase_ < Phase::kEnding) end_ranks(0, ranks_.launch().grace_ms);
}

/// A rank gets one SIGTERM, on which it may save its work. Where a batch system ends the job, the signal is the batch
/// system's; the launcher may have received its own first. The launcher may send this frame twice: for an agent that
/// was signalled, and for itself.
void Agent::on_end(const End& end) {
  const bool gentle = end.signal == SIGTERM && end.grace_ms > 0;
  if (gentle && (signalled_by_batch_system_ || waiting_for_batch_signal_)) return;
  waiting_for_batch_signal_ = gentle && end.told && starter_ == Starter::kBatchSystem && phase_ == Phase::kRunning;
  if (!waiting_for_batch_signal_) return end_ranks(end.signal, end.grace_ms);
  end_ranks(0, end.grace_ms);
  const std::chrono::milliseconds grace(end.grace_ms);
  batch_signal_timer_.expires_after(std::min<std::chrono::milliseconds>(1s, grace / 2));
  batch_signal_timer_.async_wait([this, grace](boost::system::error_code error) {
    waiting_for_batch_signal_ = false;
    if (!error && !signalled_by_batch_system_ && phase_ == Phase::kEnding) end_ranks(SIGTERM, grace.count());
  });
}

void Agent::launch(Launch message) {
  if (phase_ > Phase::kRunning) return;  // the ranks are being ended
  if (phase_ == Phase::kRunning && message.elastic_slots == 0) throw Error(Errc::kProtocol, "a second launch");
  guarded_.shared->grace_ms = message.grace_ms;
  const std::string socket = guarded_.directory + "/rendezvous.sock";
  if (std::exchange(phase_, Phase::kRunning) == Phase::kWaiting) {
    prober_.stop();  // a later probe is that of a host that joins an elastic job
    rendezvous_.open(socket);
  }
  ranks_.start(std::move(message), socket, facts_);
  on_process_gone();  // for the case that no rank could be started
}

void Agent::wait_for_children() {
  child_signals_.async_wait([this](boost::system::error_code error, int) {
    if (error) return;
    wait_for_children();  // before reaping, so that no signal falls between the two
    if (ranks_.reap(/*stopped_by_us=*/phase_ >= Phase::kEnding)) on_process_gone();
  });
}

void Agent::on_process_gone() {
  if (phase_ == Phase::kWaiting || phase_ >= Phase::kDraining || ranks_.any_running()) return;
  if (phase_ == Phase::kRunning && ranks_.launch().elastic_slots > 0) return;  // others may be started
  if (children().empty()) return drain();
  // The ranks have ended and left processes behind.
  if (phase_ == Phase::kRunning) end_ranks(SIGTERM, ranks_.launch().grace_ms);
  if (phase_ == Phase::kEnding) stragglers_.terminate();
  if (phase_ == Phase::kKilling) kill_ranks();
}

/// `signal`: 0 if the ranks have it already.
void Agent::end_ranks(int signal, std::int64_t grace_ms) {
  if (phase_ == Phase::kWaiting) return drain();
  if (phase_ >= Phase::kKilling) return;
  if (grace_ms <= 0) {
    kill_ranks();
  } else {
    phase_ = Phase::kEnding;
    if (signal != 0) signal_everything(signal);
    stragglers_.watch(std::chrono::milliseconds(grace_ms));
    grace_timer_.expires_after(std::chrono::milliseconds(grace_ms));
    grace_timer_.async_wait([this](boost::system::error_code error) {
      if (!error) kill_ranks();
    });
  }
  if (ranks_.launch().elastic_slots > 0) on_process_gone();  // all of its ranks may have ended before
}

void Agent::signal_everything(int signal) {
  batch_signal_timer_.cancel();
  stragglers_.terminate();  // before a rank that ends at once makes orphans of them
  ranks_.signal(-1, signal);
  ranks_.signal(-1, SIGCONT);  // a stopped process acts on no signal
}

void Agent::kill_ranks() {
  if (phase_ >= Phase::kDraining) return;
  phase_ = Phase::kKilling;
  stragglers_.stop();
  ranks_.signal(-1, SIGKILL);
  for (const pid_t pid : children()) ::kill(pid, SIGKILL);  // their own children come back here through reap()
}

void Agent::drain() {
  phase_ = Phase::kDraining;
  prober_.stop();
  grace_timer_.cancel();
  stragglers_.stop();
  batch_signal_timer_.cancel();
  rendezvous_.close();
  finish_if_drained();
  watch_drain();
}

void Agent::finish_if_drained() {
  if (phase_ != Phase::kDraining || !ranks_.all_output_sent()) return;
  if (channel_lost_) return context_.stop();
  FrameHeader<ToLauncher> finished;
  finished.type = ToLauncher::kFinished;
  writer_.send_bulk(finished, nullptr, 0);
  writer_.finish();
}

/// A process that does not belong to the job may have been given a rank's pipe and would hold it open for ever.
void Agent::watch_drain() {
  drain_timer_.expires_after(1s);
  drain_timer_.async_wait([this](boost::system::error_code error) {
    if (error || phase_ != Phase::kDraining) return;
    ranks_.close_idle_output();
    watch_drain();
  });
}

}  // namespace runjob
