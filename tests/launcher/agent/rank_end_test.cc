#include "launcher/agent/rank_end.hpp"

#include <csignal>

#include "launcher/agent/host_facts.hpp"
#include "tests/catch.hpp"

using namespace runjob;

namespace {

constexpr int kExitedWith3 = 3 << 8;  // as waitpid() gives it

bool is_out_of_memory(int wait_status, bool stopped_by_us, std::int64_t kills_since) {
  return exited_of(wait_status, {}, stopped_by_us, oom_kills() - kills_since).out_of_memory;
}

}  // namespace

TEST_CASE("only SIGKILL while the kernel ended processes means that memory was short", "[unit]") {
  CHECK(is_out_of_memory(SIGKILL, false, 1));
  CHECK_FALSE(is_out_of_memory(SIGKILL, false, 0));
  CHECK_FALSE(is_out_of_memory(SIGKILL, true, 1));
  CHECK_FALSE(is_out_of_memory(SIGTERM, false, 1));
  CHECK_FALSE(is_out_of_memory(kExitedWith3, false, 1));
}

TEST_CASE("the end of a rank has its status, its memory and its processor time", "[unit]") {
  rusage usage{};
  usage.ru_maxrss = 4096;
  usage.ru_utime = {2, 500000};
  usage.ru_stime = {1, 250000};
  const Exited exited = exited_of(kExitedWith3, usage, true, 0);
  CHECK(exited.wait_status == kExitedWith3);
  CHECK(exited.stopped_by_us);
  CHECK(exited.max_rss_kib == 4096);
  CHECK(exited.cpu_seconds == 3.75);
}
