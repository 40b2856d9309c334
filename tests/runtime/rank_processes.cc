#include "tests/runtime/rank_processes.hpp"

#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/unique_handle.hpp"
#include "tests/rendezvous/local_rendezvous.hpp"

namespace runjob::runtime {
namespace {

struct Pipe {
  UniqueFd read_end, write_end;
  Pipe() {
    int ends[2];
    if (::pipe(ends) != 0) throw std::runtime_error("pipe");
    read_end.reset(ends[0]);
    write_end.reset(ends[1]);
  }
};

void write_all(int fd, const std::string& text) {
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t count = ::write(fd, text.data() + done, text.size() - done);
    if (count <= 0) return;
    done += static_cast<std::size_t>(count);
  }
}

std::string read_all(int fd) {
  std::string text;
  char chunk[4096];
  for (ssize_t count = 0; (count = ::read(fd, chunk, sizeof chunk)) > 0;)
    text.append(chunk, static_cast<std::size_t>(count));
  return text;
}

/// Up to a newline: the end of the file does not come while later children hold copies of the write end.
std::string read_line(int fd) {
  std::string text;
  for (char c = 0; ::read(fd, &c, 1) == 1 && c != '\n';) text += c;
  return text;
}

/// A forked rank, as its parent sees it.
struct Child {
  pid_t pid = -1;
  Pipe instructions, report;  // the rendezvous' address to it, its outcome from it
};

[[noreturn]] void be_child(Child& child, const std::function<Outcome()>& body, const Environment& environment) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  child.instructions.write_end.reset();
  child.report.read_end.reset();
  const std::string address = read_line(child.instructions.read_end.get());
  if (!address.empty()) ::setenv("RUNJOB_RENDEZVOUS", address.c_str(), 1);
  for (const auto& [name, value] : environment) ::setenv(name.c_str(), value.c_str(), 1);
  Outcome outcome;
  try {
    outcome = body();
  } catch (const std::exception& error) {
    outcome = {RUNJOB_INTERNAL, std::string("exception: ") + error.what(), 0};
  }
  write_all(child.report.write_end.get(), std::to_string(outcome.code) + "\n" + outcome.message);
  ::_exit(0);  // without destructors: Catch's belong to the parent
}

std::unique_ptr<Child> start(const std::function<Outcome()>& body, const Environment& environment) {
  auto child = std::make_unique<Child>();
  child->pid = ::fork();
  if (child->pid < 0) throw std::runtime_error("fork");
  if (child->pid == 0) be_child(*child, body, environment);
  child->instructions.read_end.reset();
  child->report.write_end.reset();
  return child;
}

Outcome collect(Child& child) {
  const std::string report = read_all(child.report.read_end.get());
  Outcome outcome;
  ::waitpid(child.pid, &outcome.wait_status, 0);
  const std::size_t line = report.find('\n');
  if (line == report.npos) return outcome;
  outcome.code = static_cast<runjob_code>(std::stoi(report));
  outcome.message = report.substr(line + 1);
  return outcome;
}

}  // namespace

RankOptions on_one_host(int size) {
  RankOptions options;
  options.hosts.assign(static_cast<std::size_t>(size), "alpha");
  return options;
}

std::vector<Outcome> run_ranks(const RankOptions& options, const std::function<Outcome(int rank)>& body) {
  std::vector<std::unique_ptr<Child>> children;
  for (int rank = 0; rank < static_cast<int>(options.hosts.size()); ++rank) {
    Environment environment = options.environment;
    environment["RUNJOB_RANK"] = std::to_string(rank);
    children.push_back(start([&] { return body(rank); }, environment));
  }
  // Its thread starts only now: a child of a process with threads could not use its locks.
  const rendezvous::LocalRendezvous rendezvous(options.hosts, std::chrono::seconds(options.start_timeout_seconds));
  for (const auto& child : children) {
    write_all(child->instructions.write_end.get(), rendezvous.address() + "\n");
  }
  std::vector<Outcome> outcomes;
  for (const auto& child : children) outcomes.push_back(collect(*child));
  return outcomes;
}

Outcome run_alone(const std::function<Outcome()>& body, const Environment& environment) {
  const std::unique_ptr<Child> child = start(body, environment);
  write_all(child->instructions.write_end.get(), "\n");
  return collect(*child);
}

Outcome outcome_of(runjob_code code) {
  return {code, code == RUNJOB_OK ? "" : runjob_error_message(), 0};
}

}  // namespace runjob::runtime
