#include "launcher/child_process.hpp"

#include <cerrno>
#include <fcntl.h>
#include <signal.h>
#include <string_view>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace runjob {
namespace {

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> result;
  result.reserve(words.size() + 1);
  for (std::string& word : words) result.push_back(word.data());
  result.push_back(nullptr);
  return result;
}

/// Returns errno when none of the candidates could be executed; the choice among errors is execvp's.
int execute(const ChildSpec& spec) {
  std::vector<std::string> arguments = spec.command;
  std::vector<std::string> variables;
  for (const auto& [name, value] : spec.environment) variables.push_back(name + "=" + value);
  const std::vector<char*> argv = pointers(arguments);
  const std::vector<char*> envp = pointers(variables);
  int error = ENOENT;
  for (std::string& file : executable_candidates(spec.command.front(), spec.environment)) {
    ::execve(file.c_str(), argv.data(), envp.data());
    if (errno == ENOEXEC) {  // a script without #!, which execvp gives to the shell
      std::string shell = "/bin/sh";
      std::vector<char*> script{shell.data(), file.data()};
      script.insert(script.end(), argv.begin() + 1, argv.end());
      ::execve(shell.c_str(), script.data(), envp.data());
    }
    if (errno == EACCES) error = EACCES;
    if (errno != ENOENT && errno != ENOTDIR && errno != EACCES) return errno;
  }
  return error;
}

void default_signals() {
  for (int number = 1; number < NSIG; ++number) ::signal(number, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

/// `source` or /dev/null becomes `target`. Sources are above 2, so no target overwrites a later source.
void place(int source, int target) {
  const int from = source >= 0 ? source : ::open("/dev/null", target == STDIN_FILENO ? O_RDONLY : O_WRONLY);
  ::dup2(from, target);
}

[[noreturn]] void run_child(const ChildSpec& spec, pid_t parent, int failure_pipe) {
  const auto fail = [failure_pipe](ChildStartError::Step step, int error_number) {
    const ChildStartError error{step, error_number};
    static_cast<void>(!::write(failure_pipe, &error, sizeof error));
    ::_exit(127);
  };
  default_signals();
  if (spec.new_session) ::setsid();
  if (spec.die_with_parent) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(127);  // it died before the line above
  }
  place(spec.standard_input, STDIN_FILENO);
  place(spec.standard_output, STDOUT_FILENO);
  place(spec.standard_error, STDERR_FILENO);
  ::close_range(3, ~0u, 4 /* CLOSE_RANGE_CLOEXEC: failure_pipe must live until exec */);
  if (spec.descriptor_limit) ::setrlimit(RLIMIT_NOFILE, &*spec.descriptor_limit);
  if (!spec.working_directory.empty() && ::chdir(spec.working_directory.c_str()) != 0) {
    fail(ChildStartError::Step::kWorkingDirectory, errno);
  }
  fail(ChildStartError::Step::kExec, execute(spec));
  ::_exit(127);
}

/// A copy of `fd` above 2, so that placing it cannot clobber another; -1 stays.
UniqueFd above_standard(int fd) {
  return UniqueFd(fd < 0 ? -1 : ::fcntl(fd, F_DUPFD_CLOEXEC, 3));
}

}  // namespace

std::vector<std::string> executable_candidates(const std::string& name, const Environment& environment) {
  if (name.find('/') != std::string::npos) return {name};
  if (name.empty()) return {};
  const auto path = environment.find("PATH");
  std::string_view rest = path == environment.end() ? "/usr/local/bin:/bin:/usr/bin" : std::string_view(path->second);
  std::vector<std::string> candidates;
  for (;;) {
    const std::size_t colon = rest.find(':');
    const std::string_view directory = rest.substr(0, colon);
    candidates.push_back(directory.empty() ? name : std::string(directory) + "/" + name);
    if (colon == std::string_view::npos) return candidates;
    rest.remove_prefix(colon + 1);
  }
}

StartingChild begin_child(const ChildSpec& spec) {
  const UniqueFd input = above_standard(spec.standard_input);
  const UniqueFd output = above_standard(spec.standard_output);
  const UniqueFd error = above_standard(spec.standard_error);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return {-1, {}, errno};
  UniqueFd reader(ends[0]);
  const UniqueFd writer(ends[1]);

  ChildSpec prepared = spec;
  prepared.standard_input = input.get();
  prepared.standard_output = output.get();
  prepared.standard_error = error.get();
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return {-1, {}, errno};
  if (pid == 0) run_child(prepared, parent, writer.get());
  return {pid, std::move(reader), 0};
}

ChildStart finish_child(StartingChild child) {
  if (child.pid < 0) return {-1, {ChildStartError::Step::kFork, child.fork_error}};
  ChildStartError failure;
  ssize_t got = 0;
  do {
    got = ::read(child.failure.get(), &failure, sizeof failure);
  } while (got < 0 && errno == EINTR);
  if (got == 0) return {child.pid, {}};
  if (got != static_cast<ssize_t>(sizeof failure)) failure = {ChildStartError::Step::kFork, EIO};
  while (::waitpid(child.pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  return {-1, failure};
}

ChildStart start_child(const ChildSpec& spec) {
  return finish_child(begin_child(spec));
}

}  // namespace runjob
