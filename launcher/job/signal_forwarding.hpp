#pragma once

#include <chrono>
#include <functional>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>

namespace runjob {

/// Forwards the signals that the launcher gets on behalf of the ranks: SIGUSR1, SIGUSR2, SIGQUIT, SIGWINCH and SIGCONT
/// go to every rank. SIGTSTP (Ctrl-Z) stops all ranks and then this process; SIGCONT lets all of them go on. The ranks
/// get SIGSTOP for SIGTSTP, as with mpirun: their process groups have no parent in their session, and in such groups
/// the kernel ignores SIGTSTP (POSIX, "orphaned process group"). A signal that was ignored when this process was
/// started stays ignored; the ranks go on after a stop in any case. The first process of a container's PID namespace
/// cannot be stopped: SIGTSTP has no effect there but a warning.
/// Owner    the job. Outlives the loop's run.
/// Threads  the loop's one thread.
class SignalForwarding {
 public:
  struct Hooks {
    /// Sends the signal to every rank.
    std::function<void(int number)> send;
    /// Calls `done` from the loop when every signal sent so far has left this process, or never if that is impossible.
    std::function<void(std::function<void()> done)> when_sent;
    /// Called before and after the time in which this process is stopped; `stopped` is its length.
    std::function<void()> before_stop;
    std::function<void(std::chrono::steady_clock::duration stopped)> after_stop;
  };

  SignalForwarding(boost::asio::any_io_executor executor, Hooks hooks);

  void start();

 private:
  void wait();
  void on_signal(int number);
  void stop_all();
  void stop_ourselves();

  Hooks hooks_;
  boost::asio::signal_set signals_;
  const bool continues_;  // SIGCONT is forwarded
  boost::asio::steady_timer stop_limit_;
  bool stopping_ = false;  // the ranks have been stopped, this process has not
};

}  // namespace runjob
