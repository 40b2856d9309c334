/// One rank of an elastic job that trains through the C interface, and checks every value:
///
///     elastic_rank STOP MICROSECONDS [BYTES]
///
/// It makes steps of so many microseconds each, until there is a file STOP on rank 0's host. Each step is one allreduce
/// and a commit of a state of BYTES (4096). A rank that is lost or comes changes nothing about the state: it depends on
/// the number of steps only, and is compared with that at the end.
///
/// Prints one line in each generation, after its first allreduce, with the times of that and of the last one in the
/// generation before (0: none), in seconds of the monotonic clock; one line when an allreduce fails; and one at the
/// end:
///
///     generation 2: rank 0 of 3, process 0: stood from 1234.500000 to 1234.567890
///     error at 1234.511111: ...
///     end: rank 0 of 3, process 0: 812 steps
///
/// The tests of schedules start it, and so do benchmarks/elastic and the soak of elastic jobs.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <runjob/runjob.hpp>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void require(bool condition, const std::string& text) {
  if (!condition) throw runjob::Error(RUNJOB_MISMATCH, text.c_str());
}

/// Another rank, or the connection to it, is the cause, so that the rest can go on without it.
bool is_loss(runjob_code code) {
  return code == RUNJOB_PEER_LOST || code == RUNJOB_ABORTED || code == RUNJOB_TIMEOUT || code == RUNJOB_CONNECT;
}

/// What is trained: after n steps word i is the sum of all s < n for which s modulo the number of words is i.
struct State {
  explicit State(std::size_t words) : values(words, 0) {}

  void step() {
    values[static_cast<std::size_t>(steps) % values.size()] += steps;
    ++steps;
  }
  void check() const {
    State expected(values.size());
    while (expected.steps < steps) expected.step();
    const auto [own, other] = std::mismatch(values.begin(), values.end(), expected.values.begin());
    if (own == values.end()) return;
    require(false, "the state is not that of " + std::to_string(steps) + " steps: word " +
                       std::to_string(own - values.begin()) + " is " + std::to_string(*own) + " and not " +
                       std::to_string(*other));
  }

  std::int64_t steps = 0;
  std::vector<std::int64_t> values;
};

class Rank {
 public:
  Rank(std::string stop, int microseconds, std::size_t words)
      : stop_(std::move(stop)), pause_(microseconds), live_(words), commit_(words) {}

  void run() {
    runjob::detail::check(runjob_elastic_enter());
    bool must_meet = runjob_generation() < 0;
    for (;;) {
      if (must_meet) runjob::detail::check(runjob_elastic_meet(commit_number_, nullptr));
      try {
        if (must_meet) sync();
        commit();
        if (train()) break;
        if (is_leaving_) return;
      } catch (const runjob::Error& error) {
        if (!is_loss(error.code())) throw;
        std::printf("error at %.6f: %s\n", now(), error.what());
        restore();
      }
      must_meet = true;
    }
    live_.check();
    std::printf("end: %s: %lld steps\n", place().c_str(), static_cast<long long>(live_.steps));
  }

 private:
  /// Returns true at the end of the training, false when all ranks are to meet.
  bool train() {
    const runjob::Communicator world;
    const int size = world.size(), rank = world.rank();
    const std::string name = "step";
    for (bool is_first = true;; is_first = false) {
      if (pause_.count() > 0) std::this_thread::sleep_for(pause_);
      std::int32_t update = 0, leaving = 0;
      runjob::detail::check(runjob_elastic_pending(&update, &leaving));
      const bool stop = rank == 0 && ::access(stop_.c_str(), F_OK) == 0;
      std::vector<std::int64_t> sum{stop ? 1 : 0, update != 0 ? 1 : 0, 1, live_.steps + rank};
      world.allreduce(std::span<std::int64_t>(sum), name);
      if (is_first) print_generation();
      last_ = now();
      require(sum[2] == size, std::to_string(sum[2]) + " ranks of " + std::to_string(size) + " have taken part");
      require(sum[3] == size * live_.steps + size * (size - 1) / 2, "the ranks are not in the same step");
      live_.step();
      commit();
      if (sum[0] != 0) return true;
      is_leaving_ = leaving != 0;
      if (sum[1] != 0) return false;
    }
  }

  void commit() {
    commit_number_ = -1;
    commit_.steps = live_.steps;
    std::memcpy(commit_.values.data(), live_.values.data(), live_.values.size() * sizeof(std::int64_t));
    commit_number_ = live_.steps;
  }

  void restore() { live_ = commit_; }

  /// Gives the newest state, rank 0's, to the ranks that lack it.
  void sync() {
    const runjob::Communicator world;
    std::vector<std::int64_t> commits(static_cast<std::size_t>(world.size()));
    runjob::detail::check(runjob_elastic_commits(commits.data()));
    bool is_needed = false;
    for (const std::int64_t each : commits) {
      require(each <= commits[0], "rank 0 has not the newest commit");
      is_needed |= each < commits[0];
    }
    if (!is_needed) return;
    world.broadcast(std::span<std::int64_t>(&live_.steps, 1), 0, "steps");
    void* const values = live_.values.data();
    const auto bytes = static_cast<std::int64_t>(live_.values.size() * sizeof(std::int64_t));
    const bool lacks = commits[static_cast<std::size_t>(world.rank())] < commits[0];
    runjob::detail::check(runjob_elastic_transfer(&values, &bytes, 1, lacks ? 1 : 0));
    live_.check();  // at once: a later error would only show that something has gone wrong before
  }

  void print_generation() const {
    std::printf("generation %d: %s: stood from %.6f to %.6f\n", runjob_generation(), place().c_str(), last_, now());
  }

  static std::string place() {
    return "rank " + std::to_string(runjob_rank()) + " of " + std::to_string(runjob_size()) + ", process " +
           std::getenv("RUNJOB_PROCESS_NUMBER");
  }

  const std::string stop_;
  const std::chrono::microseconds pause_;
  State live_, commit_;
  std::int64_t commit_number_ = -1;
  bool is_leaving_ = false;
  double last_ = 0;
};

std::size_t number(const char* text) {
  return static_cast<std::size_t>(std::strtoull(text, nullptr, 10));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3 && argc != 4) {
    std::fprintf(stderr, "elastic_rank: error: expected STOP MICROSECONDS [BYTES]\n");
    return 2;
  }
  std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
  try {
    runjob::init();
    const std::size_t bytes = argc == 4 ? number(argv[3]) : 4096;
    Rank(argv[1], static_cast<int>(number(argv[2])), std::max<std::size_t>(1, bytes / sizeof(std::int64_t))).run();
    runjob::shutdown();
    return 0;
  } catch (const std::exception& error) {
    static_cast<void>(runjob_failing(error.what()));
    std::fprintf(stderr, "elastic_rank: error: %s\n", error.what());
    return 1;
  }
}
