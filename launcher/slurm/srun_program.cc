#include "launcher/slurm/srun_program.hpp"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>

#include "base/error.hpp"
#include "launcher/processes/child_process.hpp"
#include "launcher/processes/pipe.hpp"

namespace runjob {
namespace {

namespace asio = boost::asio;

std::string text_of(int status) {
  if (WIFSIGNALED(status)) return fmt::format("was killed by signal {}", WTERMSIG(status));
  return fmt::format("exited with status {}", WEXITSTATUS(status));
}

}  // namespace

class SrunProgram::State : public std::enable_shared_from_this<State> {
 public:
  State(asio::any_io_executor executor, Events events) : messages_(executor), events_(std::move(events)) {}

  void start(const std::vector<std::string>& command, const Environment& environment, const std::string& input);
  void stop();
  void finish();

 private:
  asio::awaitable<void> read_lines();
  std::string reap();

  asio::posix::stream_descriptor messages_;
  Events events_;
  pid_t pid_ = -1;  // -1 once it has been waited for
};

void SrunProgram::State::start(const std::vector<std::string>& command, const Environment& environment,
                               const std::string& input) {
  Pipe in = make_pipe();
  Pipe out = make_pipe();
  // The call fits into the buffer of the pipe. It contains the key and is therefore not on a command line.
  if (::write(in.writer.get(), input.data(), input.size()) != static_cast<ssize_t>(input.size()))
    throw system_error("cannot write to a pipe", errno);
  in.writer.reset();
  ChildSpec child;
  child.command = command;
  child.environment = environment;
  child.standard_input = in.reader.get();
  child.standard_output = out.writer.get();
  child.standard_error = out.writer.get();
  child.new_session = true;  // Ctrl-C is ours to pass on
  child.die_with_parent = true;
  const ChildStart started = start_child(child);
  if (started.pid < 0)
    throw Error(Errc::kUnavailable,
                fmt::format("cannot start {}: {}; are SLURM's commands installed here? If not, name the hosts with -H",
                            command.front(), std::strerror(started.error.error_number)));
  pid_ = started.pid;
  messages_.assign(out.reader.release());
  const auto self = shared_from_this();
  asio::co_spawn(messages_.get_executor(), read_lines(), [self](const std::exception_ptr&) {});
}

asio::awaitable<void> SrunProgram::State::read_lines() {
  constexpr std::size_t kLongestLine = 64 * 1024;
  std::string text;
  for (;;) {
    const auto [error, size] = co_await asio::async_read_until(messages_, asio::dynamic_buffer(text, kLongestLine),
                                                               '\n', asio::as_tuple(asio::use_awaitable));
    if (error == asio::error::not_found) {  // no line is that long
      text.clear();
      continue;
    }
    if (error) break;
    const std::string line = text.substr(0, size - 1);
    text.erase(0, size);
    if (events_.on_line) events_.on_line(line);
  }
  if (!events_.on_end) co_return;
  const auto on_end = events_.on_end;
  on_end(reap());  // it has closed its output, so its end is near
}

std::string SrunProgram::State::reap() {
  int status = 0;
  while (pid_ > 0 && ::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  return text_of(status);
}

void SrunProgram::State::finish() {
  constexpr auto kPatience = std::chrono::seconds(10);
  if (pid_ < 0) return;
  const UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
  pollfd wanted{process.get(), POLLIN, 0};
  const auto limit = static_cast<int>(std::chrono::milliseconds(kPatience).count());
  while (::poll(&wanted, 1, limit) < 0 && errno == EINTR) {
  }
  stop();
}

void SrunProgram::State::stop() {
  events_ = {};
  boost::system::error_code ignored;
  messages_.close(ignored);
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);  // not waited for yet, so the pid is still its own
  reap();
}

SrunProgram::SrunProgram(asio::any_io_executor executor, const std::vector<std::string>& command,
                         const Environment& environment, const std::string& input, Events events)
    : state_(std::make_shared<State>(std::move(executor), std::move(events))) {
  state_->start(command, environment, input);
}

SrunProgram::~SrunProgram() {
  state_->stop();
}

void SrunProgram::finish() {
  state_->finish();
}

}  // namespace runjob
