#include "launcher/remote/channel_ssh_program.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <signal.h>
#include <sstream>
#include <string_view>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>

#include "base/environment.hpp"
#include "base/error.hpp"
#include "launcher/channel/fd_channel.hpp"
#include "launcher/processes/child_process.hpp"
#include "launcher/processes/pipe.hpp"

namespace runjob {
namespace {

namespace asio = boost::asio;

struct Remedy {
  std::string_view said;  ///< part of ssh's line
  std::string_view text;
};

constexpr Remedy kRemedies[] = {
    {"Permission denied", "give the right user (user@host) or key (-i), or load the key into ssh-agent"},
    {"Could not resolve hostname", "is the name right?"},
    {"Connection refused", "is sshd running there, on that port (-p)?"},
    {"timed out", "is it up, and does a firewall let SSH through? (--connect-timeout)"},
    {"No route to host", "is it up, and on this network?"},
};

constexpr std::string_view kKeyChanged = "REMOTE HOST IDENTIFICATION HAS CHANGED";

/// The last line of ssh as the reason of a failure, with the remedy.
std::string explain(const std::string& line, bool key_changed, const std::string& host) {
  if (line.find("Host key verification failed") != std::string::npos) {
    if (!key_changed)
      return "its host key is not known; check it and connect once with ssh, or pass --accept-new-host-keys";
    return fmt::format(
        "its host key has changed: somebody may be in between. If it was installed anew, remove the old key "
        "with ssh-keygen -R {}",
        host);
  }
  for (const Remedy& remedy : kRemedies) {
    if (line.find(remedy.said) != std::string::npos) return fmt::format("{}; {}", line, remedy.text);
  }
  return line;
}

/// The lines of a program's standard error. Outlives its channel by a turn of the loop.
struct Messages {
  Messages(asio::any_io_executor executor, UniqueFd reader, RemoteMessage handler)
      : pipe(executor, reader.release()), end_timer(executor), on_message(std::move(handler)) {}

  asio::posix::stream_descriptor pipe;
  asio::steady_timer end_timer;  // for who waits for the last line
  bool ended = false;
  RemoteMessage on_message;
  std::string last;
  bool key_changed = false;
};

asio::awaitable<void> read_lines(std::shared_ptr<Messages> messages) {
  constexpr std::size_t kLongestLine = 64 * 1024;
  std::string text;
  for (;;) {
    const auto [error, size] = co_await asio::async_read_until(messages->pipe, asio::dynamic_buffer(text, kLongestLine),
                                                               '\n', asio::as_tuple(asio::use_awaitable));
    if (error == asio::error::not_found) {  // no line is that long
      text.clear();
      continue;
    }
    if (error) break;
    std::string line = text.substr(0, size - 1);
    text.erase(0, size);
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.empty()) continue;
    messages->last = line;
    if (line.find(kKeyChanged) != std::string::npos) messages->key_changed = true;
    if (messages->on_message) messages->on_message(line);
  }
  messages->ended = true;
  messages->end_timer.cancel();
}

class SshProgramChannel : public FdChannel {
 public:
  SshProgramChannel(asio::any_io_executor executor, UniqueFd input, UniqueFd output, pid_t program,
                    std::shared_ptr<Messages> messages, std::string host)
      : FdChannel(executor, std::move(input), std::move(output)),
        program_(program),
        messages_(std::move(messages)),
        host_(std::move(host)) {
    asio::co_spawn(executor, read_lines(messages_), [](const std::exception_ptr&) {});
  }
  ~SshProgramChannel() override {
    ::kill(program_, SIGKILL);  // not waited for yet, so the pid is still its own
    while (::waitpid(program_, nullptr, 0) < 0 && errno == EINTR) {
    }
    boost::system::error_code ignored;
    messages_->pipe.close(ignored);
    messages_->on_message = nullptr;
  }

  /// At the end of the stream, waits for the last line on the other stream, because it has the reason.
  asio::awaitable<std::size_t> read_some(asio::mutable_buffer buffer) override {
    const std::size_t bytes = co_await FdChannel::read_some(buffer);
    if (bytes == 0 && !messages_->ended) {
      const std::shared_ptr<Messages> messages = messages_;
      messages->end_timer.expires_after(std::chrono::milliseconds(500));  // somebody else may hold that pipe open
      co_await messages->end_timer.async_wait(asio::as_tuple(asio::use_awaitable));
    }
    co_return bytes;
  }

  std::string last_message() const override { return explain(messages_->last, messages_->key_changed, host_); }

 private:
  pid_t program_;
  std::shared_ptr<Messages> messages_;  // with read_lines()
  std::string host_;
};

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

std::vector<std::string> command_line(const Host& host, const SshOptions& options, const std::string& remote_command) {
  std::vector<std::string> words = words_of(options.command.value_or("ssh"));
  const auto add = [&words](const std::string& option, const std::string& value) {
    words.push_back(option);
    words.push_back(value);
  };
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(options.connect_timeout).count();
  add("-o", "BatchMode=yes");
  add("-o", fmt::format("ConnectTimeout={}", seconds));
  // Switches off the settings of a user's configuration that are for an interactive login and would disturb this one.
  // A master for other connections would end them with this job, or hold the channel open after its end.
  for (const char* setting :
       {"LogLevel=ERROR", "ClearAllForwardings=yes", "RemoteCommand=none", "PermitLocalCommand=no", "ControlMaster=no"})
    add("-o", setting);
  if (options.accept_new_host_keys) add("-o", "StrictHostKeyChecking=accept-new");
  if (const auto port = host.port ? host.port : options.port) add("-p", std::to_string(*port));
  const std::string& identity = host.identity.empty() ? options.identity : host.identity;
  if (!identity.empty()) add("-i", identity);
  if (!host.user.empty()) add("-l", host.user);
  words.insert(words.end(), {"-T", "-x", "--", host.name, remote_command});
  return words;
}

}  // namespace

std::unique_ptr<Channel> start_ssh_program(asio::any_io_executor executor, const Host& host, const SshOptions& options,
                                           const std::string& remote_command, RemoteMessage on_message) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw system_error("cannot make a socket pair", errno);
  UniqueFd ours(ends[0]);
  const UniqueFd theirs(ends[1]);
  Pipe errors = make_pipe();
  UniqueFd input(::fcntl(ours.get(), F_DUPFD_CLOEXEC, 3));
  if (!input) throw system_error("cannot duplicate a descriptor", errno);

  ChildSpec child;
  child.command = command_line(host, options, remote_command);
  child.environment = current_environment();
  child.standard_input = theirs.get();
  child.standard_output = theirs.get();
  child.standard_error = errors.writer.get();
  child.new_session = true;  // no terminal to ask on, and Ctrl-C is ours
  child.die_with_parent = true;
  const ChildStart start = start_child(child);
  if (start.pid < 0) {
    throw Error(Errc::kUnavailable, fmt::format("cannot start {}: {}; is the OpenSSH client installed?",
                                                child.command.front(), std::strerror(start.error.error_number)));
  }
  auto messages = std::make_shared<Messages>(executor, std::move(errors.reader), std::move(on_message));
  return std::make_unique<SshProgramChannel>(executor, std::move(input), std::move(ours), start.pid,
                                             std::move(messages), host.name);
}

}  // namespace runjob
