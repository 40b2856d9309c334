#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "hostfile/slurm_task.hpp"
#include "launcher/channel/bounded_listener.hpp"
#include "launcher/srun_task/munge.hpp"
#include "launcher/srun_task/step_messages.hpp"
#include "launcher/srun_task/step_names.hpp"
#include "launcher/srun_task/step_roll.hpp"

namespace runjob {

/// Gathers the tasks of a step at task 0: listens on one of step_ports(), or on any port that it publishes in the
/// step's names, until each task has sent its hello, then answers all of them. Whoever sends no hello of this user's
/// step is turned away.
/// Bounds   those of BoundedListener: 64 connections more than tasks, and ten seconds for a hello.
/// Owner    task 0's StepHead. Outlives the loop's run.
/// Threads  the loop's one thread; the constructor may run before the loop.
class StepGathering {
 public:
  /// Called once, from the loop: true when all tasks have come, false when the time was up and those that came were
  /// refused.
  using Done = std::function<void(bool complete)>;

  /// Listens when it returns. Errors  Error(kSystem) when none of the ports is free, naming a user who holds one.
  /// `names`: used within this call only; null if the step has none.
  StepGathering(boost::asio::io_context& context, const SlurmTask& task, Munge munge, StepNames* names,
                std::chrono::milliseconds timeout, Done done);

  /// The tasks that have come.
  const StepRoll& roll() const { return roll_; }

  /// Sends each task its welcome. Call it when all have come.
  void welcome_all(const std::function<StepWelcome(const StepHello& hello)>& welcome);

 private:
  struct Waiting {
    StreamSocket socket;
    StepHello hello;
  };

  boost::asio::awaitable<void> receive(StreamSocket socket);
  void add(StreamSocket socket, const std::string& line, const std::string& from, const std::string& at);
  void refuse_all();
  void answer(StreamSocket socket, std::string text);

  boost::asio::io_context& context_;
  const SlurmTask task_;
  const Munge munge_;
  const std::chrono::milliseconds timeout_;
  const Done done_;
  int port_ = 0;
  boost::asio::steady_timer timer_;
  StepRoll roll_;
  std::vector<Waiting> waiting_;  // tasks that have come and have no answer yet
  BoundedListener listener_;      // of connections that have sent no hello yet
};

}  // namespace runjob
