#include "launcher/host_sources/discovery_script.hpp"

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <fmt/format.h>

#include "base/error.hpp"
#include "base/screen_text.hpp"
#include "launcher/processes/child_process.hpp"
#include "launcher/processes/pipe.hpp"

namespace runjob {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr auto kPause = std::chrono::seconds(1);
/// A script that has printed an empty line and neither ends nor prints for so long is one that does not end.
constexpr auto kFollowedAfter = std::chrono::seconds(1);
constexpr std::size_t kMostBytes = 4 * 1024 * 1024;

std::string end_text(int status) {
  if (WIFSIGNALED(status)) return fmt::format("was killed by signal {}", WTERMSIG(status));
  return fmt::format("exited with status {}", WEXITSTATUS(status));
}

/// Where the text up to its last empty line ends, and the list before that line begins. npos: there is no empty line.
std::size_t end_of_lists(const std::string& text) {
  const std::size_t found = text.rfind("\n\n");
  return found == std::string::npos ? found : found + 1;
}

/// The last of some lists, which empty lines end.
std::string last_list(const std::string& lists) {
  const std::size_t last = lists.find_last_not_of('\n');
  if (last == std::string::npos) return "";
  const std::size_t before = lists.rfind("\n\n", last);
  const std::size_t begin = lists.find_first_not_of('\n', before == std::string::npos ? 0 : before);
  return lists.substr(begin, last + 1 - begin);
}

std::string last_line(const std::string& text) {
  const std::size_t last = text.find_last_not_of(" \t\r\n");
  if (last == std::string::npos) return "";
  const std::size_t before = text.rfind('\n', last);
  const std::size_t begin = before == std::string::npos ? 0 : before + 1;
  return one_line(text.substr(begin, last + 1 - begin));
}

}  // namespace

class DiscoveryScript::State : public std::enable_shared_from_this<State> {
 public:
  State(const asio::any_io_executor& executor, std::string command, Environment environment, Events events)
      : command_(std::move(command)),
        environment_(std::move(environment)),
        events_(std::move(events)),
        output_{asio::posix::stream_descriptor(executor), {}},
        errors_{asio::posix::stream_descriptor(executor), {}},
        process_(executor),
        timer_(executor),
        quiet_timer_(executor) {}

  void run();
  void stop();

 private:
  struct Reader {
    asio::posix::stream_descriptor pipe;
    std::string text;

    error_code take_some();
    void take_rest();
  };

  void watch(Reader& reader);
  void on_output();
  void on_quiet();
  void on_process_gone();
  void run_later();

  const std::string command_;
  const Environment environment_;
  const Events events_;
  Reader output_, errors_;
  asio::posix::stream_descriptor process_;  // readable when it has ended
  asio::steady_timer timer_, quiet_timer_;
  pid_t pid_ = -1;
  bool followed_ = false;
  bool stopped_ = false;
};

void DiscoveryScript::State::run() {
  if (stopped_) return;
  try {
    Pipe out = make_pipe();
    Pipe err = make_pipe();
    ChildSpec child;
    child.command = {"/bin/sh", "-c", command_};
    child.environment = environment_;
    child.standard_output = out.writer.get();
    child.standard_error = err.writer.get();
    child.new_session = true;  // Ctrl-C is ours
    child.die_with_parent = true;
    const ChildStart start = start_child(child);
    if (start.pid < 0)
      throw Error(Errc::kUnavailable, fmt::format("cannot be started: {}", std::strerror(start.error.error_number)));
    pid_ = start.pid;
    output_.pipe.assign(out.reader.release());
    errors_.pipe.assign(err.reader.release());
    for (Reader* reader : {&output_, &errors_}) reader->pipe.non_blocking(true);
  } catch (const Error& error) {
    events_.on_failure(error.what());
    return run_later();
  }
  followed_ = false;
  output_.text.clear();
  errors_.text.clear();
  watch(output_);
  watch(errors_);
  const int handle = static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0));
  if (handle < 0) return;  // before Linux 5.3: the end of its output is its end
  process_.assign(handle);
  process_.async_wait(asio::posix::stream_descriptor::wait_read, [self = shared_from_this()](error_code error) {
    if (!error) self->on_process_gone();
  });
}

/// Waits until there is something to read, and reads it in the handler: bytes that an asynchronous read had taken would
/// still be on their way when the end of the process is handled.
void DiscoveryScript::State::watch(Reader& reader) {
  const auto on_readable = [self = shared_from_this(), &reader](error_code error) {
    if (error || self->stopped_ || !reader.pipe.is_open()) return;
    const bool is_output = &reader == &self->output_;
    error = reader.take_some();
    if (error && error != asio::error::would_block) {
      if (is_output && !self->process_.is_open()) self->on_process_gone();
      return;
    }
    if (is_output) self->on_output();
    self->watch(reader);
  };
  reader.pipe.async_wait(asio::posix::stream_descriptor::wait_read, on_readable);
}

error_code DiscoveryScript::State::Reader::take_some() {
  std::array<char, 4096> bytes;
  error_code error;
  const std::size_t count = pipe.read_some(asio::buffer(bytes), error);
  text.append(bytes.data(), count);
  if (text.size() > kMostBytes) text.erase(0, text.size() / 2);
  return error;
}

/// Takes the end of the output, which is still in the pipe when the script has ended. A process that the script has
/// left may keep the pipe open.
void DiscoveryScript::State::Reader::take_rest() {
  if (!pipe.is_open()) return;
  while (!take_some()) {
  }
  error_code ignored;
  pipe.close(ignored);
}

void DiscoveryScript::State::on_output() {
  if (end_of_lists(output_.text) == std::string::npos) return;
  if (followed_) return on_quiet();
  quiet_timer_.expires_after(kFollowedAfter);
  quiet_timer_.async_wait([self = shared_from_this()](error_code error) {
    if (!error && !self->stopped_ && self->pid_ > 0) self->on_quiet();
  });
}

/// Takes the lists that are complete; the last one counts.
void DiscoveryScript::State::on_quiet() {
  followed_ = true;
  const std::size_t end = end_of_lists(output_.text);
  if (end == std::string::npos) return;
  const std::string list = last_list(output_.text.substr(0, end));
  output_.text.erase(0, end);
  if (!list.empty()) events_.on_list(list);
}

void DiscoveryScript::State::on_process_gone() {
  if (stopped_ || pid_ < 0) return;
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  error_code ignored;
  process_.close(ignored);
  quiet_timer_.cancel();
  output_.take_rest();
  errors_.take_rest();
  if (status != 0) {
    const std::string line = last_line(errors_.text);
    events_.on_failure(end_text(status) + (line.empty() ? "" : ": " + line));
  } else if (!followed_) {
    events_.on_list(output_.text);
  } else if (output_.text.find_first_not_of(" \t\r\n") != std::string::npos) {
    events_.on_list(last_list(output_.text));
  }
  run_later();
}

void DiscoveryScript::State::run_later() {
  if (stopped_) return;
  timer_.expires_after(kPause);
  timer_.async_wait([self = shared_from_this()](error_code error) {
    if (!error) self->run();
  });
}

void DiscoveryScript::State::stop() {
  stopped_ = true;
  timer_.cancel();
  quiet_timer_.cancel();
  error_code ignored;
  for (Reader* reader : {&output_, &errors_}) reader->pipe.close(ignored);
  process_.close(ignored);
  if (pid_ < 0) return;
  ::kill(-pid_, SIGKILL);  // its own session; not waited for yet, so the number is still its own
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
}

DiscoveryScript::DiscoveryScript(asio::any_io_executor executor, std::string command, Environment environment,
                                 Events events)
    : state_(std::make_shared<State>(executor, std::move(command), std::move(environment), std::move(events))) {}

DiscoveryScript::~DiscoveryScript() {
  stop();
}

void DiscoveryScript::start() {
  state_->run();
}

void DiscoveryScript::stop() {
  state_->stop();
}

}  // namespace runjob
