#include "launcher/agent/stack_collector.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <signal.h>
#include <string_view>
#include <sys/resource.h>
#include <unistd.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>

#include "base/log.hpp"
#include "base/screen_text.hpp"
#include "base/unique_handle.hpp"
#include "launcher/agent/placement/cpu_topology.hpp"
#include "launcher/channel/exception_message.hpp"
#include "launcher/processes/child_process.hpp"
#include "launcher/processes/process_handle.hpp"
#include "launcher/processes/session_processes.hpp"

namespace runjob {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;

constexpr auto kToolsLimit = 2500ms;  // for all ranks; the job is over and waits
constexpr double kToolsSeconds = std::chrono::duration<double>(kToolsLimit).count();
constexpr std::size_t kMostOutput = 256 * 1024;  // of one tool
constexpr std::size_t kMostAtOnce = 16;

/// No core file: that of a large rank takes minutes and fills disks. The main thread is meant: in another one, which
/// may have no Python, the handler does not show it as the current thread. A tool that was killed may have left a
/// SIGSTOP behind, with which it attaches, so SIGCONT follows.
void abort_without_core(pid_t leader, pid_t pid) {
  const ProcessHandle program(pid);
  const std::vector<SessionProcess> processes = session_processes(leader);
  const bool is_ours = std::any_of(processes.begin(), processes.end(), [pid](const auto& p) { return p.pid == pid; });
  if (!is_ours) return;  // it has ended, and its number may be somebody else's
  const rlimit none{0, 0};
  ::prlimit(pid, RLIMIT_CORE, &none, nullptr);
  program.signal_main_thread(SIGABRT);
  program.signal(SIGCONT);
}

/// The last line of a tool's output that is not empty: its error, if it has failed.
std::string last_line(std::string_view text) {
  const std::size_t last = text.find_last_not_of("\n ");
  if (last == std::string_view::npos) return "";
  text = text.substr(0, last + 1);
  return one_line(std::string(text.substr(text.rfind('\n') + 1)));
}

}  // namespace

StackCollector::StackCollector(asio::any_io_executor executor, Report report)
    : executor_(std::move(executor)), report_(std::move(report)) {}

void StackCollector::collect(const std::vector<std::pair<int, pid_t>>& running, Environment environment) {
  environment_ = std::move(environment);
  deadline_ = std::chrono::steady_clock::now() + kToolsLimit;
  waiting_.assign(running.begin(), running.end());
  // Before any tool runs: Python's stacks do not depend on the tools.
  for (const auto& [process, leader] : running) {
    const std::vector<SessionProcess> processes = session_processes(leader);
    if (const SessionProcess* program = program_among(processes); program != nullptr && program->handles_abort)
      python_.insert(leader);
  }
  const std::size_t workers = std::clamp(affinity().size(), std::size_t{1}, std::min(kMostAtOnce, running.size() + 1));
  for (std::size_t i = 0; i < workers; ++i) {
    asio::co_spawn(executor_, work(), [](const std::exception_ptr& error) {
      if (const auto message = exception_message(error)) log::warn("cannot collect stacks: {}", *message);
    });
  }
}

void StackCollector::dump_python() {
  for (const pid_t leader : python_) {
    const std::vector<SessionProcess> processes = session_processes(leader);
    const SessionProcess* program = program_among(processes);
    if (program != nullptr && program->handles_abort) abort_without_core(leader, program->pid);
  }
}

asio::awaitable<void> StackCollector::work() {
  while (!waiting_.empty()) {
    const auto [process, leader] = waiting_.front();
    waiting_.pop_front();
    StackTrace result = co_await trace(leader);
    report_(process, std::move(result));
  }
}

asio::awaitable<StackTrace> StackCollector::trace(pid_t leader) {
  StackTrace result;
  const std::vector<SessionProcess> processes = session_processes(leader);
  const SessionProcess* program = program_among(processes);
  if (program == nullptr) {
    result.missing = "its process has ended";
    co_return result;
  }
  result.python = python_.contains(leader);
  std::vector<std::string> command = tool_for(program->pid);
  if (command.empty()) {
    result.missing = "there is neither eu-stack nor gdb";
    co_return result;
  }
  if (std::chrono::steady_clock::now() >= deadline_) {
    result.missing = fmt::format("the {:.3g} s for all ranks of its host were over", kToolsSeconds);
    co_return result;
  }
  const std::string tool = command.front();
  Output output = co_await output_of(std::move(command));
  result.native = std::move(output.text);
  if (output.is_cut_off) {
    result.missing = fmt::format("{} did not end within {:.3g} s{}", tool, kToolsSeconds,
                                 tool == "gdb" ? "; eu-stack, of elfutils, is faster" : "");
  } else {
    const std::string reason = output.error.empty() ? last_line(result.native) : output.error;
    result.missing = fmt::format("{} could not read it{}{}", tool, reason.empty() ? "" : ": ", reason);
  }
  co_return result;
}

/// Empty when there is none.
std::vector<std::string> StackCollector::tool_for(pid_t pid) const {
  const std::string number = std::to_string(pid);
  const std::array<std::vector<std::string>, 2> tools = {
      std::vector<std::string>{"eu-stack", "-1", "-p", number},
      std::vector<std::string>{"gdb", "-nx", "-batch", "-p", number, "-iex", "set debuginfod enabled off", "-ex",
                               "thread apply 1 bt"}};
  for (const std::vector<std::string>& tool : tools) {
    const std::vector<std::string> files = executable_candidates(tool.front(), environment_);
    const bool found = std::any_of(files.begin(), files.end(),
                                   [](const std::string& file) { return ::access(file.c_str(), X_OK) == 0; });
    if (found) return tool;
  }
  return {};
}

asio::awaitable<StackCollector::Output> StackCollector::output_of(std::vector<std::string> command) {
  Output output;
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    output.error = ::strerror(errno);
    co_return output;
  }
  asio::posix::stream_descriptor reader(executor_, ends[0]);
  UniqueFd writer(ends[1]);
  ChildSpec child;
  child.command = std::move(command);
  child.environment = environment_;
  child.standard_output = child.standard_error = writer.get();
  child.new_session = true;
  child.die_with_parent = true;
  const ChildStart start = start_child(child);
  writer.reset();
  if (start.pid < 0) {
    output.error = start_error_text(start.error.error_number);
    co_return output;
  }
  const ProcessHandle process(start.pid);  // its number may be used again
  asio::steady_timer limit(executor_, deadline_);
  limit.async_wait([&process, &output](boost::system::error_code error) {
    if (error) return;
    output.is_cut_off = true;
    process.signal(SIGKILL);
  });
  std::array<char, 16 * 1024> block;
  for (;;) {
    const asio::mutable_buffer buffer = asio::buffer(block);
    const auto [error, bytes] = co_await reader.async_read_some(buffer, asio::as_tuple(asio::use_awaitable));
    if (error) break;
    output.text.append(block.data(), std::min(bytes, kMostOutput - std::min(kMostOutput, output.text.size())));
  }
  co_return output;
}

}  // namespace runjob
