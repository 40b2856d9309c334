#include "launcher/job/signal_forwarding.hpp"

#include <signal.h>
#include <unistd.h>
#include <utility>

#include "base/log.hpp"
#include "launcher/processes/ignored_signal.hpp"

namespace runjob {
namespace {

using namespace std::chrono_literals;

constexpr int kForwarded[] = {SIGUSR1, SIGUSR2, SIGQUIT, SIGWINCH, SIGCONT, SIGTSTP};
constexpr auto kStopLimit = 1s;  // an agent that does not read must not keep this process from stopping

}  // namespace

SignalForwarding::SignalForwarding(boost::asio::any_io_executor executor, Hooks hooks)
    : hooks_(std::move(hooks)), signals_(executor), continues_(!is_ignored(SIGCONT)), stop_limit_(executor) {
  for (const int number : kForwarded) {
    if (!is_ignored(number)) signals_.add(number);
  }
}

void SignalForwarding::start() {
  wait();
}

void SignalForwarding::wait() {
  signals_.async_wait([this](boost::system::error_code error, int number) {
    if (error) return;
    wait();
    on_signal(number);
  });
}

void SignalForwarding::on_signal(int number) {
  if (number == SIGTSTP) return stop_all();
  if (number == SIGCONT) stopping_ = false;  // as in the kernel, takes back a stop that has not happened yet
  hooks_.send(number);
}

void SignalForwarding::stop_all() {
  if (::getpid() == 1)
    return log::warn("the job is not stopped: runjob is the first process of its container, which cannot be stopped");
  if (std::exchange(stopping_, true)) return;
  hooks_.send(SIGSTOP);
  hooks_.when_sent([this] { stop_ourselves(); });
  stop_limit_.expires_after(kStopLimit);
  stop_limit_.async_wait([this](boost::system::error_code error) {
    if (!error) stop_ourselves();
  });
}

void SignalForwarding::stop_ourselves() {
  if (!std::exchange(stopping_, false)) return;
  stop_limit_.cancel();
  hooks_.before_stop();
  const auto began = std::chrono::steady_clock::now();
  signals_.remove(SIGCONT);  // that of this stop is sent in any case, also when SIGCONT has been ignored from the start
  ::raise(SIGSTOP);
  if (continues_) signals_.add(SIGCONT);
  hooks_.after_stop(std::chrono::steady_clock::now() - began);
  hooks_.send(SIGCONT);
}

}  // namespace runjob
