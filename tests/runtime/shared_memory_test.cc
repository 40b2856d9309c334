#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/catch.hpp"
#include "tests/runtime/calls.hpp"
#include "tests/runtime/rank_processes.hpp"

/// Jobs on one host over shared memory, as their processes see them: what collectives_test.cc and failures_test.cc do
/// not show for every backend.

using namespace runjob::runtime;

namespace {

void check_all(const std::vector<Outcome>& outcomes) {
  for (std::size_t rank = 0; rank < outcomes.size(); ++rank) {
    INFO("rank " << rank << ": " << outcomes[rank].message);
    CHECK(outcomes[rank].ok());
  }
}

/// How many mappings of shared memory this process has.
int mappings() {
  std::ifstream maps("/proc/self/maps");
  int count = 0;
  for (std::string line; std::getline(maps, line);) count += line.find("/memfd:runjob") != line.npos;
  return count;
}

/// As containers' seccomp filters do.
void forbid_memfd() {
  sock_filter filter[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                          BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 0, 1),
                          BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
                          BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog program{sizeof filter / sizeof filter[0], filter};
  require(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no_new_privs");
  require(::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0, "seccomp");
}

/// As `ulimit -f` does.
void limit_files() {
  const rlimit limit{4096, RLIM_INFINITY};
  require(::setrlimit(RLIMIT_FSIZE, &limit) == 0, "setrlimit");
}

/// As a container of its own is. `others`: namespaces besides that of the mounts.
void enter_container(int others) {
  if (others != CLONE_NEWUSER && ::unshare(CLONE_NEWNS | others) == 0) return;
  require(::unshare(CLONE_NEWUSER | CLONE_NEWNS | others) == 0, "unshare");
}

/// What `body` makes this process write to standard error.
std::string said_during(const std::function<void()>& body) {
  int ends[2];
  require(::pipe(ends) == 0, "pipe");
  const int before = ::dup(STDERR_FILENO);
  ::dup2(ends[1], STDERR_FILENO);
  ::close(ends[1]);
  body();
  ::dup2(before, STDERR_FILENO);  // the pipe's last write end
  ::close(before);
  std::string text;
  char piece[4096];
  for (ssize_t count = 0; (count = ::read(ends[0], piece, sizeof piece)) > 0;) {
    text.append(piece, static_cast<std::size_t>(count));
  }
  ::close(ends[0]);
  return text;
}

/// A float sum whose terms' order shows in its last bits, of many sizes.
std::vector<float> sum_of_sizes(int rank, const std::string& name) {
  std::vector<float> all;
  for (const std::size_t count : {1, 3, 17, 4095, 4096, 100003, 800001}) {
    std::vector<float> in(count), out(count);
    for (std::size_t i = 0; i < count; ++i)
      in[i] = 1.0F / static_cast<float>(1 + (i * 7 + static_cast<std::size_t>(rank)) % 1013);
    check(finish(start_allreduce(name, in, out, RUNJOB_FLOAT32)));
    check(finish(start_allreduce(name, in, in, RUNJOB_FLOAT32)));  // in place
    require(in == out, "in place and not");
    all.insert(all.end(), out.begin(), out.end());
  }
  return all;
}

}  // namespace

TEST_CASE("ranks on one host share memory, and those told not to do not", "[runtime][multiproc]") {
  const std::string on = GENERATE("1", "0");
  RankOptions options = on_one_host(2);
  options.environment = {{"RUNJOB_SHARED_MEMORY", on}};
  check_all(run_ranks(options, [&](int) {
    check(runjob_init());
    require(mappings() == (on == "1" ? 1 : 0), "mappings: " + std::to_string(mappings()));
    check(small_allreduce("x"));
    check(runjob_shutdown());
    require(mappings() == 0, "still mapped");
    return outcome_of(RUNJOB_OK);
  }));
}

TEST_CASE("ranks on several hosts share no memory", "[runtime][multiproc]") {
  RankOptions options;
  options.hosts = {"alpha", "beta"};
  options.environment = {{"RUNJOB_ADDRESS", "127.0.0.1"}};
  check_all(run_ranks(options, [&](int) {
    check(runjob_init());
    require(mappings() == 0, "shared");
    check(small_allreduce("x"));
    return outcome_of(runjob_shutdown());
  }));
}

TEST_CASE("when one rank cannot share memory, all use the network, and rank 0 says why", "[runtime][multiproc]") {
  using Obstacle = std::pair<std::function<void(int rank)>, std::string>;
  const Obstacle obstacle = GENERATE(Obstacle{[](int rank) {
                                                if (rank == 1) ::setenv("RUNJOB_SHARED_MEMORY", "0", 1);
                                              },
                                              "rank 1 has it switched off"},
                                     Obstacle{[](int rank) {
                                                if (rank == 0) forbid_memfd();
                                              },
                                              "rank 0: memfd_create: Operation not permitted"},
                                     Obstacle{[](int rank) {
                                                if (rank == 0) limit_files();
                                              },
                                              "and the limit (ulimit -f) is 4096 bytes"});
  check_all(run_ranks(on_one_host(3), [&](int rank) {
    obstacle.first(rank);
    for (int round = 0; round < 2; ++round) {
      std::string said = said_during([] { check(runjob_init()); });
      require(mappings() == 0, "shared");
      require((said.find(obstacle.second) != said.npos) == (rank == 0), "said: " + said);
      check(small_allreduce("x"));
      check(runjob_shutdown());
    }
    return outcome_of(RUNJOB_OK);
  }));
}

TEST_CASE("ranks in containers of one network share memory, whichever of them is in one", "[runtime][multiproc]") {
  // Only a process with one thread may enter a user namespace, and ThreadSanitizer has a thread of its own.
#if defined(__SANITIZE_THREAD__)
  const int others = GENERATE(0, CLONE_NEWIPC | CLONE_NEWUTS);
#else
  const int others = GENERATE(0, CLONE_NEWUSER, CLONE_NEWIPC | CLONE_NEWUTS);
#endif
  const int outside = GENERATE(-1, 0, 1);
  check_all(run_ranks(on_one_host(3), [&](int rank) {
    if (rank != outside) enter_container(others);
    for (int round = 0; round < 2; ++round) {
      const std::string said = said_during([] { check(runjob_init()); });
      require(said.empty(), "said: " + said);
      require(mappings() == 1, "mappings: " + std::to_string(mappings()));
      check(small_allreduce("x"));
      check(runjob_shutdown());
    }
    return outcome_of(RUNJOB_OK);
  }));
}

TEST_CASE("the sum of floats has the same bits on all ranks, in place and not, and again", "[runtime][multiproc]") {
  const int size = GENERATE(2, 3, 4, 8);
  check_all(run_ranks(on_one_host(size), [&](int rank) {
    check(runjob_init());
    const std::vector<float> first = sum_of_sizes(rank, "a");
    require(sum_of_sizes(rank, "b") == first, "again");
    std::vector<float> of_root = first;
    const auto extent = static_cast<std::int64_t>(of_root.size());
    runjob_handle handle = 0;
    check(runjob_broadcast_async("r", of_root.data(), &extent, 1, RUNJOB_FLOAT32, size - 1, 0, &handle));
    check(finish(handle));
    require(of_root == first, "other bits on the last rank");
    check(runjob_shutdown());
    check(runjob_init());
    require(sum_of_sizes(rank, "c") == first, "after another init");
    return outcome_of(runjob_shutdown());
  }));
}

TEST_CASE("more ranks than processors come to an end too", "[runtime][multiproc]") {
  check_all(run_ranks(on_one_host(8), [](int rank) {
    check(runjob_init());
    std::vector<std::vector<std::int64_t>> values;
    std::vector<runjob_handle> handles;
    for (std::size_t i = 0; i < 200; ++i) {
      values.emplace_back(1 + i * i % 9001, rank);
    }
    for (std::size_t i = 0; i < values.size(); ++i) {
      handles.push_back(start_allreduce("t" + std::to_string(i), values[i], values[i], RUNJOB_INT64));
    }
    for (std::size_t i = 0; i < handles.size(); ++i) {
      check(finish(handles[i]));
      require(values[i] == std::vector<std::int64_t>(values[i].size(), 28), "tensor " + std::to_string(i));
    }
    return outcome_of(runjob_shutdown());
  }));
}

TEST_CASE("two jobs on a host do not meet", "[runtime][multiproc]") {
  const pid_t pid = ::fork();
  const int offset = pid == 0 ? 100 : 1;
  const auto outcomes = run_ranks(on_one_host(2), [&](int rank) {
    check(runjob_init());
    for (int round = 0; round < 50; ++round) {
      std::vector<std::int32_t> values(static_cast<std::size_t>(1 + round * 1000), offset + rank);
      check(finish(start_allreduce("x", values, values, RUNJOB_INT32)));
      require(values.back() == 2 * offset + 1, "sum");
    }
    return outcome_of(runjob_shutdown());
  });
  if (pid == 0) ::_exit(outcomes[0].ok() && outcomes[1].ok() ? 0 : 1);
  int status = -1;
  ::waitpid(pid, &status, 0);
  CHECK(status == 0);
  check_all(outcomes);
}

TEST_CASE("a rank killed while all exchange large tensors is named by the others, whatever they do",
          "[runtime][multiproc]") {
  const int kind = GENERATE(0, 1, 2);
  const int victim = 1;
  const auto outcomes = run_ranks(on_one_host(4), [&](int rank) {
    check(runjob_init());
    std::vector<float> data(3u << 20, 1);
    const auto extent = static_cast<std::int64_t>(data.size());
    for (int round = 0;; ++round) {
      runjob_handle handle = 0;
      runjob_code code = RUNJOB_OK;
      if (kind == 0) {
        code = runjob_allreduce_async("x", data.data(), data.data(), &extent, 1, RUNJOB_FLOAT32, RUNJOB_MAX, 1, 1, 0,
                                      &handle);
      } else if (kind == 1) {
        code = runjob_broadcast_async("x", data.data(), &extent, 1, RUNJOB_FLOAT32, victim, 0, &handle);
      } else {
        code = runjob_allgather_async("x", data.data(), nullptr, 0, &extent, 1, RUNJOB_FLOAT32, 0, &handle);
      }
      if (rank == victim && round == 1) {
        static_cast<void>(runjob_wait(handle, 0.002));
        std::raise(SIGKILL);
      }
      if (code == RUNJOB_OK) code = finish(handle);
      if (code != RUNJOB_OK) return outcome_of(code);
    }
  });
  for (int rank = 0; rank < 4; ++rank) {
    const Outcome& outcome = outcomes[static_cast<std::size_t>(rank)];
    INFO(outcome.message);
    if (rank == victim) {
      CHECK(WIFSIGNALED(outcome.wait_status));
    } else {
      CHECK(outcome.code == RUNJOB_PEER_LOST);
      CHECK_THAT(outcome.message, ContainsSubstring("rank 1 on alpha is gone"));
    }
  }
}

namespace {

/// Whether every thread of the process is stopped: proc(5), /proc/PID/task/TID/stat, the state after the name.
bool is_stopped(pid_t pid) {
  for (const auto& thread : std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/task")) {
    std::string line;
    std::getline(std::ifstream(thread.path() / "stat"), line);
    if (line.substr(line.rfind(')') + 2, 1) != "T") return false;
  }
  return true;
}

/// Returns when it runs no more: the signal alone comes a moment later.
void stop(pid_t pid) {
  ::kill(pid, SIGSTOP);
  while (!is_stopped(pid)) ::sched_yield();
}

}  // namespace

TEST_CASE("a stopped rank is a timeout that names it", "[runtime][multiproc]") {
  RankOptions options = on_one_host(2);
  options.environment = {{"RUNJOB_GLOO_TIMEOUT_SECONDS", "1"}};
  const std::size_t count = GENERATE(8, 1 << 20);
  const auto outcomes = run_ranks(options, [&](int rank) {
    check(runjob_init());
    std::vector<std::int32_t> pids(2, 0);
    pids[static_cast<std::size_t>(rank)] = ::getpid();
    check(finish(start_allreduce("pids", pids, pids, RUNJOB_INT32)));
    std::vector<float> values(count, 1);
    if (rank == 1) {  // stopped by rank 0 when "x" is submitted here, and continued by it
      const runjob_handle handle = start_allreduce("x", values, values, RUNJOB_FLOAT32);
      check(small_allreduce("submitted"));
      static_cast<void>(finish(handle));
      return Outcome();
    }
    check(small_allreduce("submitted"));
    stop(pids[1]);
    const Outcome outcome = outcome_of(finish(start_allreduce("x", values, values, RUNJOB_FLOAT32)));
    ::kill(pids[1], SIGCONT);
    return outcome;
  });
  INFO(outcomes[0].message);
  CHECK(outcomes[0].code == RUNJOB_TIMEOUT);
  CHECK_THAT(outcomes[0].message, ContainsSubstring("waited 1 s for rank 1"));
  CHECK(outcomes[1].ok());
}

TEST_CASE("a child forked by a rank cannot use the job, and the rank still can", "[runtime][multiproc]") {
  check_all(run_ranks(on_one_host(2), [](int) {
    check(runjob_init());
    check(small_allreduce("before"));
    const pid_t pid = ::fork();
    if (pid == 0) ::_exit(small_allreduce("child") == RUNJOB_NOT_INITIALIZED && mappings() == 0 ? 0 : 1);
    int status = -1;
    ::waitpid(pid, &status, 0);
    require(status == 0, "child");
    check(small_allreduce("after"));
    return outcome_of(runjob_shutdown());
  }));
}
