#pragma once

#include <chrono>
#include <functional>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>

namespace runjob {

/// Whether `number` was ignored when this process was started (nohup, a shell's background job) and nobody has asked for
/// it since. Such a signal is not for us.
bool is_ignored(int number);

/// The signals that we get on behalf of the ranks: SIGUSR1, SIGUSR2, SIGQUIT, SIGWINCH and SIGCONT go to every rank.
/// SIGTSTP (Ctrl-Z) stops them all and then us; SIGCONT lets all go on. The ranks get SIGSTOP for it, as with mpirun: their
/// process groups have no parent in their session, and in such groups the kernel ignores SIGTSTP (POSIX, "orphaned process
/// group"). What was ignored when we were started stays ignored. Threads  the loop's one thread.
class SignalForwarding {
 public:
  struct Hooks {
    /// Sends the signal to every rank.
    std::function<void(int number)> send;
    /// Calls `done` from the loop once what was sent has left this process, or never when it cannot.
    std::function<void(std::function<void()> done)> when_sent;
    /// Around the time in which we are stopped and take no part in anything; `stopped` is how long it was.
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
  boost::asio::steady_timer stop_limit_;
  bool stopping_ = false;  // the ranks have been told to, we have not stopped yet
};

}  // namespace runjob
