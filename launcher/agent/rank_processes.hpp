#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <sys/resource.h>
#include <sys/types.h>
#include <utility>
#include <vector>

#include <boost/asio/any_io_executor.hpp>

#include "launcher/agent/input_pipe.hpp"
#include "launcher/agent/output_pipe.hpp"
#include "launcher/agent/placement/rank_placement.hpp"
#include "launcher/channel/frame_writer.hpp"
#include "launcher/channel/messages.hpp"

namespace runjob {

/// The ranks of this host, by the numbers of their processes: starts them, forwards their output and input through
/// pipes, signals them, and reports their starts and ends to the launcher.
/// Owner    the agent. Outlives the loop's run.
/// Threads  the loop's one thread; no other may exist, since ranks are forked from it.
class RankProcesses {
 public:
  /// `frames` outlives this object. `on_output_closed` is called from the loop whenever a rank's stream has ended.
  RankProcesses(boost::asio::any_io_executor executor, FrameWriter<ToLauncher>& frames,
                std::function<void()> on_output_closed);

  /// Starts the ranks of `launch`; of an elastic job, several times. `rendezvous`: the path of the socket at which they
  /// find it. `host`: this one.
  /// Errors  Error(kSystem) when pipes cannot be made; a rank that cannot be started is reported as kStartFailed.
  void start(Launch launch, const std::string& rendezvous, const Hello& host);

  /// Waits for the children that have ended, the orphans among them too. Returns false if there was none. In an elastic
  /// job it kills what a rank has left that did not end well: the next one needs its GPU.
  /// `stopped_by_us`: the agent has signalled the ranks to end.
  bool reap(bool stopped_by_us);

  /// Sends a signal to the process group of `process`, or of every process if that is -1.
  void signal(int process, int number) const;
  void add_output_credit(int process, Stream stream, std::int64_t bytes);
  void push_input(int process, std::string bytes);

  /// From now on the output is read and thrown away: there is no launcher to send it to.
  void discard_output();
  /// Lets the streams go on that have waited for the writer's queue.
  void on_queue_shorter();
  /// Closes the streams that have sent everything, although some process still holds their pipes.
  void close_idle_output();

  bool any_running() const;
  bool is_running(pid_t pid) const;
  /// The number of the running process with this id; -1 for none.
  int number_of(pid_t pid) const;
  bool all_output_sent() const { return open_outputs_ == 0; }
  /// The number and the id of each running process.
  std::vector<std::pair<int, pid_t>> running() const;
  /// The last message that started ranks; its defaults before that.
  const Launch& launch() const { return launches_.back(); }
  /// Null for a process of another host.
  const LaunchProcess* find(int process) const;
  /// The topology in the launch message of a process of this host.
  const std::string& topology_of(int process) const { return processes_.at(process).message->topology; }

 private:
  struct Process {
    const Launch* message = nullptr;
    const LaunchProcess* launch = nullptr;
    pid_t pid = -1;  // -1 once it has been waited for
    std::unique_ptr<OutputPipe> output;
    std::unique_ptr<OutputPipe> error;
    std::unique_ptr<InputPipe> input;
  };

  void start_process(const LaunchProcess& spec, const RankPlacement& placement, Environment environment);
  void forward(UniqueFd reader, Stream stream, Process& process);
  void report_exit(Process& process, int wait_status, const rusage& usage, bool stopped_by_us);

  const boost::asio::any_io_executor executor_;
  FrameWriter<ToLauncher>& frames_;
  const std::function<void()> on_output_closed_;
  std::deque<Launch> launches_ = std::deque<Launch>(1);  // their addresses do not change
  std::map<int, Process> processes_;                     // by number
  int open_outputs_ = 0;
  std::int64_t oom_kills_at_start_ = 0;
};

}  // namespace runjob
