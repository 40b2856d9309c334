#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>

#include "launcher/agent/guard.hpp"
#include "launcher/agent/host_facts.hpp"
#include "launcher/agent/probing/address_prober.hpp"
#include "launcher/agent/rank_processes.hpp"
#include "launcher/agent/rendezvous_relay.hpp"
#include "launcher/agent/stack_collector.hpp"
#include "launcher/agent/stragglers.hpp"
#include "launcher/channel/channel.hpp"
#include "launcher/channel/frame_writer.hpp"
#include "launcher/channel/heartbeat.hpp"
#include "launcher/channel/messages.hpp"

namespace runjob {

/// The process of runjob on one host: carries out the launcher's frames, and ends all ranks when the launcher demands
/// it, when the channel breaks, on SIGTERM, or when the ranks have ended and left processes behind.
/// Owner    run_agent().
/// Threads  the one that calls run(); no other may exist, since ranks are forked from it.
/// Errors   reported to the launcher (kFailed) as long as it can be reached.
class Agent {
 public:
  using MakeChannel = std::function<std::unique_ptr<Channel>(boost::asio::any_io_executor)>;
  /// A batch system sends its signals to every process on the host, the ranks too. An agent that it has started heeds
  /// only SIGTERM of the signals that end a process, and does not pass it on.
  enum class Starter { kLauncher, kBatchSystem };

  Agent(Guarded guarded, Neighbours neighbours, Starter starter, const MakeChannel& make_channel);
  ~Agent();

  /// Returns when no process of the job is left on this host, and the launcher knows it if it can still be reached.
  void run();

 private:
  /// The stages of the ranks' lives. A phase only changes to a later one.
  enum class Phase { kWaiting, kRunning, kEnding, kKilling, kDraining, kFinished };

  boost::asio::awaitable<void> read_frames();
  void on_frame(const FrameHeader<ToAgent>& header, std::string_view payload);
  void on_reading_ended(const std::exception_ptr& error);
  void on_writing_ended(const std::exception_ptr& error);
  void give_up(const std::string& reason);
  void on_channel_lost();
  void on_end_signal();
  void on_end(const End& end);

  void launch(Launch message);
  void wait_for_children();
  void on_process_gone();
  void end_ranks(int signal, std::int64_t grace_ms);
  void signal_everything(int signal);
  void kill_ranks();
  void drain();
  void finish_if_drained();
  void watch_drain();

  boost::asio::io_context context_;
  std::unique_ptr<Channel> channel_;
  FrameWriter<ToLauncher> writer_;
  FrameParser<ToAgent> parser_;
  Guarded guarded_;
  const Starter starter_;
  Heartbeat heartbeat_;  // silent until the launcher begins
  boost::asio::signal_set child_signals_;
  boost::asio::signal_set end_signals_;
  boost::asio::steady_timer grace_timer_;
  boost::asio::steady_timer batch_signal_timer_;
  boost::asio::steady_timer drain_timer_;
  boost::asio::steady_timer failure_timer_;
  AddressProber prober_;
  const Hello facts_;
  RankProcesses ranks_;
  RendezvousRelay rendezvous_;
  StackCollector stacks_;
  Stragglers stragglers_;
  Phase phase_ = Phase::kWaiting;
  bool channel_lost_ = false;
  bool signalled_by_batch_system_ = false;
  bool waiting_for_batch_signal_ = false;  // SLURM is expected to signal the ranks; the agent does not signal them yet
};

}  // namespace runjob
