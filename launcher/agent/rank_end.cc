#include "launcher/agent/rank_end.hpp"

#include <csignal>
#include <sys/wait.h>

#include "launcher/agent/host_facts.hpp"

namespace runjob {

Exited exited_of(int wait_status, const rusage& usage, bool stopped_by_us, std::int64_t oom_kills_before) {
  Exited exited;
  exited.wait_status = wait_status;
  exited.stopped_by_us = stopped_by_us;
  const bool is_killed = WIFSIGNALED(wait_status) && WTERMSIG(wait_status) == SIGKILL;
  exited.out_of_memory = is_killed && !stopped_by_us && oom_kills() > oom_kills_before;
  exited.max_rss_kib = usage.ru_maxrss;
  exited.cpu_seconds = static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                       1e-6 * static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
  return exited;
}

}  // namespace runjob
