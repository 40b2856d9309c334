#include "launcher/processes/child_process.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string_view>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/unique_handle.hpp"

namespace runjob {
namespace {

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> result;
  result.reserve(words.size() + 1);
  for (std::string& word : words) result.push_back(word.data());
  result.push_back(nullptr);
  return result;
}

/// RLIMIT_NOFILE of this process before the first call of raise_descriptor_limit(), or of start_child().
const rlimit& first_descriptor_limit() {
  static const rlimit limit = [] {
    rlimit found{};
    ::getrlimit(RLIMIT_NOFILE, &found);
    return found;
  }();
  return limit;
}

/// Everything that the child needs. It is made before the child exists, which shares our memory and must not allocate.
struct Prepared {
  explicit Prepared(const ChildSpec& child)
      : spec(child), arguments(child.command), files(executable_candidates(child.command.front(), child.environment)) {
    for (const auto& [name, value] : child.environment) variables.push_back(name + "=" + value);
    argv = pointers(arguments);
    envp = pointers(variables);
    script_argv = {shell.data(), nullptr};
    script_argv.insert(script_argv.end(), argv.begin() + 1, argv.end());
    for (const int cpu : child.cpus) {
      const auto number = static_cast<std::size_t>(cpu);
      if (number / kMaskBits >= cpu_mask.size()) cpu_mask.resize(number / kMaskBits + 1, 0);
      cpu_mask[number / kMaskBits] |= 1ul << (number % kMaskBits);
    }
  }
  static constexpr std::size_t kMaskBits = 8 * sizeof(unsigned long);

  const ChildSpec& spec;
  std::vector<std::string> arguments;
  std::vector<std::string> variables;
  std::vector<std::string> files;
  std::string shell = "/bin/sh";
  std::vector<char*> argv;
  std::vector<char*> envp;
  std::vector<char*> script_argv;  // of the shell; the second is the file's place
  std::vector<unsigned long> cpu_mask;
  UniqueFd input, output, error;  // above 2, so that placing one cannot overwrite another
  pid_t parent = ::getpid();
  const rlimit& descriptor_limit = first_descriptor_limit();
  ChildStartError failure;  // written by the child
};

/// Returns errno when none of the candidates could be executed; the choice among errors is execvp's.
int execute(Prepared& child) {
  int error = ENOENT;
  for (std::string& file : child.files) {
    ::execve(file.c_str(), child.argv.data(), child.envp.data());
    if (errno == ENOEXEC) {  // a script without #!, which execvp gives to the shell
      child.script_argv[1] = file.data();
      ::execve(child.shell.c_str(), child.script_argv.data(), child.envp.data());
    }
    const int failed = errno;
    if (failed == EACCES) error = EACCES;
    if (failed == ENOENT && error == ENOENT && ::access(file.c_str(), F_OK) == 0) error = kNoInterpreter;
    if (failed != ENOENT && failed != ENOTDIR && failed != EACCES) return failed;
  }
  return error;
}

void default_signals() {
  for (int number = 1; number < NSIG; ++number) ::signal(number, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

/// `source` or /dev/null becomes `target`.
void place(int source, int target) {
  const int from = source >= 0 ? source : ::open("/dev/null", target == STDIN_FILENO ? O_RDONLY : O_WRONLY);
  ::dup2(from, target);
}

bool set_affinity(const std::vector<unsigned long>& mask) {
  const auto* set = reinterpret_cast<const cpu_set_t*>(mask.data());
  return ::sched_setaffinity(0, mask.size() * sizeof mask[0], set) == 0;
}

/// Only system calls from here to exec.
[[noreturn]] void run_child(Prepared& child) {
  const ChildSpec& spec = child.spec;
  default_signals();
  if (spec.new_session) ::setsid();
  if (spec.die_with_parent) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != child.parent) ::_exit(127);  // it died before the line above
  }
  place(child.input.get(), STDIN_FILENO);
  place(child.output.get(), STDOUT_FILENO);
  place(child.error.get(), STDERR_FILENO);
  ::close_range(3, ~0u, 0);
  ::setrlimit(RLIMIT_NOFILE, &child.descriptor_limit);
  if (spec.traceable) ::prctl(PR_SET_PTRACER, child.parent);
  if (!child.cpu_mask.empty() && !set_affinity(child.cpu_mask)) {
    child.failure = {ChildStartError::Step::kAffinity, errno};
  } else if (!spec.working_directory.empty() && ::chdir(spec.working_directory.c_str()) != 0) {
    child.failure = {ChildStartError::Step::kWorkingDirectory, errno};
  } else {
    child.failure = {ChildStartError::Step::kExec, execute(child)};
  }
  ::_exit(127);
}

/// Signals wait while the child has our handlers and our memory.
class AllSignalsBlocked {
 public:
  AllSignalsBlocked() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~AllSignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  AllSignalsBlocked(const AllSignalsBlocked&) = delete;
  AllSignalsBlocked& operator=(const AllSignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

/// The child's pid, once it executes the command or has ended.
pid_t vfork_and_run(Prepared& child) {
  const AllSignalsBlocked blocked;
  const pid_t pid = ::vfork();
  if (pid == 0) run_child(child);
  return pid;
}

/// A copy of `fd` above 2; -1 stays.
UniqueFd above_standard(int fd) {
  return UniqueFd(fd < 0 ? -1 : ::fcntl(fd, F_DUPFD_CLOEXEC, 3));
}

}  // namespace

std::string start_error_text(int error_number) {
  if (error_number != kNoInterpreter) return ::strerror(error_number);
  return "it is there, but not the interpreter that its first line names after '#!', or its loader; does the file have "
         "line ends of Windows?";
}

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

void raise_descriptor_limit() {
  const rlimit raised{first_descriptor_limit().rlim_max, first_descriptor_limit().rlim_max};
  ::setrlimit(RLIMIT_NOFILE, &raised);
}

ChildStart start_child(const ChildSpec& spec) {
  Prepared child(spec);
  child.input = above_standard(spec.standard_input);
  child.output = above_standard(spec.standard_output);
  child.error = above_standard(spec.standard_error);
  const pid_t pid = vfork_and_run(child);
  if (pid < 0) return {-1, {ChildStartError::Step::kFork, errno}};
  if (child.failure.error_number == 0) return {pid, {}};
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  return {-1, child.failure};
}

}  // namespace runjob
