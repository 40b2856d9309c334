#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <sys/resource.h>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>

#include "launcher/agent/address_prober.hpp"
#include "launcher/agent/guard.hpp"
#include "launcher/agent/host_facts.hpp"
#include "launcher/agent/input_pipe.hpp"
#include "launcher/agent/output_pipe.hpp"
#include "launcher/agent/rank_placement.hpp"
#include "launcher/agent/stack_collector.hpp"
#include "launcher/channel.hpp"
#include "launcher/frame_writer.hpp"
#include "launcher/heartbeat.hpp"
#include "launcher/messages.hpp"
#include "rendezvous/http_server.hpp"

namespace runjob {

/// Our process on one host: forks the ranks that the launcher names, forwards their output and input, relays
/// their rendezvous requests, and ends them all when told to, when the channel dies, on SIGTERM, or when they
/// have ended. Threads  the one that calls run(); none else may exist, since ranks are forked from it.
class Agent {
 public:
  using MakeChannel = std::function<std::unique_ptr<Channel>(boost::asio::any_io_executor)>;
  /// Who has started it. A batch system gives its signals to every process here, the ranks too; so of the signals that end
  /// others only SIGTERM is then for the agent, which does not pass it on.
  enum class Starter { kLauncher, kBatchSystem };

  Agent(Guarded guarded, Neighbours neighbours, Starter starter, const MakeChannel& make_channel);
  ~Agent();

  /// Returns when no process of the job is left here and the launcher has been told, if it still listens.
  void run();

 private:
  /// What happens to the ranks. Only moves forward.
  enum class Phase { kWaiting, kRunning, kEnding, kKilling, kDraining, kFinished };

  struct Rank {
    const LaunchRank* launch = nullptr;
    pid_t pid = -1;  ///< -1 once it has been waited for
    std::unique_ptr<OutputPipe> output;
    std::unique_ptr<OutputPipe> error;
    std::unique_ptr<InputPipe> input;
  };

  boost::asio::awaitable<void> read_frames();
  void on_frame(const FrameHeader& header, std::string_view payload);
  void on_channel_lost();
  void on_told_to_end();
  void on_end(const End& end);

  void launch(Launch message);
  void start_ranks(const Environment& common);
  void start_rank(const LaunchRank& spec, const RankPlacement& placement, const Environment& common);
  Environment environment_for(const LaunchRank& spec, const RankPlacement& placement, const Environment& common) const;

  void wait_for_children();
  void reap();
  Rank* running_rank(pid_t pid);
  void on_process_gone();

  void collect_stacks();
  void signal_ranks(int rank, int number);
  void end_ranks(int signal, std::int64_t grace_ms);
  void signal_everything(int signal);
  void kill_ranks();
  void drain();
  void finish_if_drained();
  void watch_drain();

  void on_request(rendezvous::Request request, rendezvous::Reply reply);
  void join(const rendezvous::Request& request, const rendezvous::Reply& reply);

  template <class Handler>
  void for_each_output(Handler handler);

  boost::asio::io_context context_;
  std::unique_ptr<Channel> channel_;
  FrameWriter writer_;
  FrameParser parser_;
  Guarded guarded_;
  const Starter starter_;
  Heartbeat heartbeat_;  // silent until the launcher begins
  boost::asio::signal_set child_signals_;
  boost::asio::signal_set end_signals_;
  boost::asio::steady_timer grace_timer_;
  boost::asio::steady_timer told_timer_;
  boost::asio::steady_timer drain_timer_;
  AddressProber prober_;
  const Hello facts_;
  Phase phase_ = Phase::kWaiting;
  bool channel_lost_ = false;
  bool told_to_end_ = false;
  bool others_may_tell_ = false;  ///< the ranks to end: for a moment, this does not
  Launch launch_;
  std::map<int, Rank> ranks_;
  int open_outputs_ = 0;
  std::int64_t oom_kills_at_start_ = 0;
  rlimit descriptor_limit_{};  // as we found it, for the ranks
  std::unique_ptr<rendezvous::HttpServer> rendezvous_;
  std::map<std::int64_t, rendezvous::Reply> relayed_;
  StackCollector stacks_;
  std::int64_t next_request_ = 0;
};

}  // namespace runjob
