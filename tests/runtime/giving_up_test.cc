#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <map>
#include <numeric>
#include <random>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

#include "tests/catch.hpp"
#include "tests/runtime/member_board.hpp"
#include "tests/runtime/set_calls.hpp"

/// Sets that their members add alone: which share an engine, how one of them ends, and what goes on then.

using namespace runjob::runtime;

namespace {

using Clock = std::chrono::steady_clock;

const std::vector<std::string> kOneHost(4, "alpha"), kTwoHosts{"alpha", "alpha", "beta", "beta"};
const Ranks kAll{0, 1, 2, 3};
constexpr std::chrono::seconds kSoon{5};  // the time limit of a member that does not answer is 2 s; the machine is busy

bool contains(const Ranks& ranks, int rank) {
  return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
}

int threads() {
  const auto tasks = std::filesystem::directory_iterator("/proc/self/task");
  return static_cast<int>(std::distance(begin(tasks), end(tasks)));
}

std::string message() {
  return runjob_error_message();
}

void require_sum(std::int32_t set, const std::string& name, const Ranks& ranks, int rank) {
  float value = static_cast<float>(rank + 1);
  check(sum(set, name, value));
  require(
      value == static_cast<float>(std::accumulate(ranks.begin(), ranks.end(), 0)) + static_cast<float>(ranks.size()),
      name + " in process set " + std::to_string(set));
}

void require_aborted(runjob_code code, const std::string& text) {
  require(code == RUNJOB_ABORTED, "the code is " + std::to_string(code) + ": " + message());
  require(message().find(text) != std::string::npos, message() + ", without: " + text);
}

std::string given_up_by(int rank, const std::string& host, std::int32_t set, const std::string& why) {
  return "rank " + std::to_string(rank) + " on " + host + " gave process set " + std::to_string(set) + " up: " + why;
}

/// The sockets of this process, by their numbers in the kernel: descriptor.
std::map<std::string, int> sockets() {
  std::map<std::string, int> found;
  for (const auto& each : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const std::string target = std::filesystem::read_symlink(each.path(), gone).string();
    if (target.starts_with("socket:")) found.emplace(target, std::stoi(each.path().filename()));
  }
  return found;
}

}  // namespace

TEST_CASE("sets of equal members in the same order share an engine, and have their own names", "[runtime][multiproc]") {
  const auto options = with_sets(GENERATE(kOneHost, kTwoHosts), GENERATE("1", "0"));
  MemberBoard board;
  check_all_ok(run_ranks(options, [&](int rank) {
    check(runjob_init());
    check(barrier("all threads are there"));
    const int before = threads();
    const std::int32_t whole = board.add(0, kAll, rank);
    require(threads() == before, "a set of all ranks has threads of its own");
    const Ranks some{3, 0, 1};
    std::vector<std::int32_t> sets{0, whole};
    if (contains(some, rank)) {
      sets.push_back(board.add(1, some, rank));
      const int with_engine = threads();
      require(with_engine > before, "the threads of the engine");
      sets.push_back(board.add(2, some, rank));
      require(threads() == with_engine, "a second set of the same ranks has threads of its own");
      require(runjob_process_set_rank(sets[2]) ==
                  static_cast<int>(std::find(some.begin(), some.end(), rank) - some.begin()),
              "the order");
    }
    for (int round = 0; round < 20; ++round) {
      // The same name in all sets, in another order on each rank.
      std::vector<std::vector<float>> values;
      std::vector<runjob_handle> handles;
      const std::size_t first = static_cast<std::size_t>(rank + round) % sets.size();
      for (std::size_t i = 0; i < sets.size(); ++i) values.emplace_back(100, static_cast<float>((i + 1) * 10));
      for (std::size_t i = 0; i < sets.size(); ++i) {
        const std::size_t each = (first + i) % sets.size();
        handles.push_back(start_sum(sets[each], "x", values[each]));
      }
      for (const runjob_handle handle : handles) check(finish(handle));
      for (std::size_t i = 0; i < sets.size(); ++i)
        require(values[i][99] == static_cast<float>((i + 1) * 10 * (i < 2 ? 4 : 3)), "sum");
    }
    for (std::size_t i = 1; i < sets.size(); ++i) {
      float value = static_cast<float>(rank);
      const std::int64_t one = 1;
      runjob_handle handle = 0;
      check(runjob_broadcast_async("b", &value, &one, 1, RUNJOB_FLOAT32, 1, sets[i], &handle));
      check(finish(handle));
      require(value == 1, "broadcast from a rank of the job");
      require_sum(sets[i], "the end", i == 1 ? kAll : some, rank);
    }
    check(barrier("all sets are used"));
    for (std::size_t i = 1; i < sets.size(); ++i) check(runjob_process_set_remove(sets[i]));
    require(threads() == before, "the last set has ended its engine");
    require_sum(0, "job", kAll, rank);
    return outcome_of(runjob_shutdown());
  }));
}

TEST_CASE("sets whose order differs have engines of their own", "[runtime][multiproc]") {
  MemberBoard board;
  check_all_ok(run_ranks(with_sets(kOneHost), [&](int rank) {
    check(runjob_init());
    const Ranks backwards{3, 2, 1, 0};
    const std::int32_t set = board.add(0, backwards, rank);
    require(ranks_of(set) == backwards && runjob_process_set_rank(set) == 3 - rank, "the order");
    const float own = static_cast<float>(rank);
    const std::int64_t one = 1;
    runjob_handle handle = 0;
    check(runjob_allgather_async("x", &own, nullptr, 0, &one, 1, RUNJOB_FLOAT32, set, &handle));
    require(take_output<float>(handle).first == std::vector<float>{3, 2, 1, 0}, "allgather");
    return outcome_of(runjob_shutdown());
  }));
}

TEST_CASE("a set that is given up ends on all its members, and nothing else does", "[runtime][multiproc]") {
  const auto options = with_sets(GENERATE(kOneHost, kTwoHosts), GENERATE("1", "0"));
  const Ranks members = GENERATE(as<Ranks>{}, Ranks{0, 1, 2, 3}, Ranks{0, 1, 3}, Ranks{3, 1, 0});
  const bool knows_names = GENERATE(false, true);
  MemberBoard board;
  check_all_ok(run_ranks(options, [&](int rank) {
    check(runjob_init());
    if (!contains(members, rank)) {
      check(barrier("end"));
      return outcome_of(runjob_shutdown());
    }
    const std::int32_t set = board.add(0, members, rank), other = board.add(1, members, rank);
    for (int i = 0; knows_names && i < 10; ++i) require_sum(set, "x", members, rank);
    std::vector<float> in_other(10, 1);
    runjob_handle goes_on = 0;
    if (rank != 1) goes_on = start_sum(other, "x", in_other);
    const std::string why = given_up_by(0, "alpha", set, "too slow");
    if (rank != 1) {
      std::vector<float> first(10, 1), second(10, 1);
      const runjob_handle handles[] = {start_sum(set, "x", first), start_sum(set, "y", second)};
      board.number(1).fetch_add(1);
      board.await(1, static_cast<int>(members.size()) - 1);
      const auto begin = Clock::now();
      if (rank == 0) check(runjob_process_set_give_up(set, "too slow"));
      for (const runjob_handle handle : handles)
        require_aborted(finish(handle), why + "; allreduce '" + (handle == handles[0] ? "x" : "y") +
                                            "' of process set " + std::to_string(set) +
                                            " was not submitted by rank 1 on alpha");
      require(Clock::now() - begin < kSoon, "the time");
      board.number(0).fetch_add(1);
    }
    board.await(0, static_cast<int>(members.size()) - 1);
    float value = 1;
    require_aborted(sum(set, "x", value), "allreduce 'x' of process set " + std::to_string(set) + ": " + why);
    runjob_handle refused = 0;
    require_aborted(runjob_barrier_async("later", set, &refused), why);
    check(runjob_process_set_give_up(set, "again"));
    if (rank == 1) goes_on = start_sum(other, "x", in_other);
    check(finish(goes_on));
    require(in_other[9] == static_cast<float>(members.size()), "the other set's sum");
    for (int i = 0; i < 10; ++i) require_sum(other, "x", members, rank);
    check(runjob_process_set_remove(set));
    const std::int32_t next = board.add(2, members, rank);
    require_sum(next, "x", members, rank);
    check(barrier("end"));
    return outcome_of(runjob_shutdown());
  }));
}

TEST_CASE("an operation is given up with its set", "[runtime][multiproc]") {
  MemberBoard board;
  check_all_ok(run_ranks(with_sets(kOneHost), [&](int rank) {
    check(runjob_init());
    require(runjob_give_up(1234, "unknown") == RUNJOB_INVALID_ARGUMENT && message() == "1234 is not a handle",
            message());
    const std::int32_t set = board.add(0, kAll, rank);
    require(runjob_process_set_give_up(set + 1, "unknown") == RUNJOB_INVALID_ARGUMENT, "an unknown set");
    require(message() == "giving up: process set " + std::to_string(set + 1) + " does not exist", message());
    std::vector<float> values(10, 1);
    const runjob_handle done = start_sum(set, "x", values);
    check(runjob_wait(done, -1));
    check(runjob_give_up(done, "it is done"));
    check(finish(done));
    check(barrier("nothing has ended"));
    require_sum(set, "y", kAll, rank);
    if (rank == 2) {
      board.await(0, 3);
      float value = 1;
      require_aborted(sum(set, "z", value), "late");
    } else {
      const runjob_handle handle = start_sum(set, "z", values);
      board.number(1).fetch_add(1);
      board.await(1, 3);
      if (rank == 1) check(runjob_give_up(handle, "late"));
      require_aborted(finish(handle),
                      given_up_by(1, "alpha", set, "allreduce 'z' of process set " + std::to_string(set) + ": late"));
      board.number(0).fetch_add(1);
    }
    require_sum(0, "job", kAll, rank);
    return outcome_of(runjob_shutdown());
  }));
}

TEST_CASE("what cannot end alone ends the job", "[runtime][multiproc]") {
  const bool is_set = GENERATE(false, true);
  const auto outcomes = run_ranks(with_sets(kOneHost), [&](int rank) {
    check(runjob_init());
    const std::int32_t set = is_set ? add_set({0, 1}) : 0;
    require(runjob_process_set_give_up(7, "no such set") == RUNJOB_INVALID_ARGUMENT, "an unknown set");
    if (const runjob_code code = barrier("all are there"); code != RUNJOB_OK) return outcome_of(code);
    float value = 1;
    if (rank == 3) return outcome_of(sum(0, "never", value));
    if (rank != 0) {
      while (sum(0, "another", value) == RUNJOB_OK) continue;
      return outcome_of(sum(0, "later", value));
    }
    check(runjob_process_set_give_up(set, "enough"));
    return outcome_of(sum(0, "never", value));
  });
  for (const Outcome& outcome : outcomes) {
    INFO(outcome.message);
    CHECK(outcome.code == RUNJOB_ABORTED);
    CHECK_THAT(outcome.message, ContainsSubstring(is_set ? "rank 0 on alpha gave process set 1 up: enough"
                                                         : "rank 0 on alpha gave the job up: enough"));
  }
}

TEST_CASE("a member that does not answer takes the engine of the set with it", "[runtime][multiproc]") {
  const auto options = with_sets(kOneHost, GENERATE("1", "0"));
  const bool has_data = GENERATE(false, true);
  const Ranks members{0, 1, 2};
  MemberBoard board;
  check_all_ok(run_ranks(options, [&](int rank) {
    check(runjob_init());
    if (rank == 3) {  // wakes rank 2 when the others have seen the end
      const bool have_ended = board.comes([&] { return board.number(0).load() == 2; });
      ::kill(board.number(1).load(), SIGCONT);
      require(have_ended, "the others have not ended");
      check(barrier("end"));
      return outcome_of(runjob_shutdown());
    }
    const std::int32_t set = board.add(0, members, rank), other = board.add(1, members, rank);
    std::vector<float> values(has_data ? 8u << 20 : 10, 1), others(10, 1);
    require_sum(set, "all are there", members, rank);
    runjob_handle handle = 0;
    if (rank == 2) {
      board.number(1) = ::getpid();
      if (has_data) handle = start_sum(set, "x", values);
      ::raise(SIGSTOP);
      if (handle != 0) static_cast<void>(finish(handle));  // its data may be complete
    } else {
      while (board.number(1).load() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      std::this_thread::sleep_for(std::chrono::milliseconds(50));  // rank 2 stops
      const runjob_handle waits = start_sum(other, "x", others);
      handle = start_sum(set, "x", values);
      board.number(2).fetch_add(1);
      board.await(2, 2);
      const auto begin = Clock::now();
      check(runjob_process_set_give_up(set, "stopped"));
      const runjob_code code = finish(handle);  // it may have been complete before rank 2 stopped
      if (code != RUNJOB_OK) require_aborted(code, "stopped");
      require_aborted(finish(waits), "all sets of these ranks end");
      require(Clock::now() - begin < kSoon, "the time");
      board.number(0).fetch_add(1);
    }
    float value = 1;
    runjob_code code = RUNJOB_OK;
    while (code == RUNJOB_OK) code = sum(other, "later", value);  // rank 2 has its decision soon
    require_aborted(code, "stopped");
    check(barrier("end"));
    check(runjob_process_set_remove(set));
    check(runjob_process_set_remove(other));
    require_sum(board.add(2, members, rank), "a new engine", members, rank);
    return outcome_of(runjob_shutdown());
  }));
}

TEST_CASE("a lost connection of a set ends the set, and the job goes on", "[runtime][multiproc]") {
  const auto options = with_sets(GENERATE(kOneHost, kTwoHosts), "0");
  const Ranks members{0, 2, 3};
  const int breaks = GENERATE(0, 3);
  MemberBoard board;
  check_all_ok(run_ranks(options, [&](int rank) {
    check(runjob_init());
    if (rank == 1) {
      check(barrier("x is done"));
      check(barrier("the set has ended"));
      require_sum(0, "job", kAll, rank);
      check(barrier("end"));
      return outcome_of(runjob_shutdown());
    }
    const std::map<std::string, int> before = sockets();
    const std::int32_t set = board.add(0, members, rank);
    std::vector<float> values(100000, 1);
    check(finish(start_sum(set, "x", values)));
    check(barrier("x is done"));  // a rank that has its sum may otherwise break what another one still waits for
    if (rank == breaks) {
      for (const auto& [name, descriptor] : sockets())
        if (!before.contains(name)) ::shutdown(descriptor, SHUT_RDWR);
    }
    float value = 1;
    runjob_code code = RUNJOB_OK;
    while (code == RUNJOB_OK) code = sum(set, "y", value);
    require(!message().empty(), "the cause");
    check(barrier("the set has ended"));
    require_sum(0, "job", kAll, rank);
    require(sum(set, "later", value) == code, "the set has ended alike");
    check(runjob_process_set_remove(set));
    require_sum(board.add(1, members, rank), "again", members, rank);
    check(barrier("end"));
    return outcome_of(runjob_shutdown());
  }));
}

TEST_CASE("a lost rank ends its sets and the job", "[runtime][multiproc]") {
  const auto options = with_sets(GENERATE(kOneHost, kTwoHosts), GENERATE("1", "0"));
  const Ranks members = GENERATE(as<Ranks>{}, Ranks{0, 1, 2, 3}, Ranks{0, 1, 3});
  MemberBoard board;
  const auto outcomes = run_ranks(options, [&](int rank) {
    check(runjob_init());
    float value = 1;
    if (!contains(members, rank)) return outcome_of(barrier("never"));
    const std::int32_t set = board.add(0, members, rank);
    Outcome outcome = outcome_of(sum(set, "first", value));  // all members have the set when it ends on one
    if (rank == 1) ::raise(SIGKILL);
    if (outcome.code == RUNJOB_OK) outcome = outcome_of(sum(set, "never", value));
    require(barrier("job") == RUNJOB_PEER_LOST, "the job did not end");
    return outcome;
  });
  for (int rank = 0; rank < 4; ++rank) {
    if (rank == 1) continue;
    INFO(outcomes[static_cast<std::size_t>(rank)].message);
    CHECK(outcomes[static_cast<std::size_t>(rank)].code == RUNJOB_PEER_LOST);
    CHECK_THAT(outcomes[static_cast<std::size_t>(rank)].message, ContainsSubstring("rank 1 on alpha is gone"));
  }
}

TEST_CASE("a shared set that one member removes ends on the others", "[runtime][multiproc]") {
  const auto options = with_sets(kOneHost, GENERATE("1", "0"));
  MemberBoard board;
  check_all_ok(run_ranks(options, [&](int rank) {
    check(runjob_init());
    const std::int32_t set = board.add(0, kAll, rank);
    require_sum(set, "x", kAll, rank);
    std::vector<float> values(10, 1);
    runjob_handle own = 0;
    if (rank == 2) own = start_sum(set, "own", values);
    if (rank == 2) check(runjob_process_set_remove(set));
    const std::string why = "process set " + std::to_string(set) + " was removed";
    if (rank == 2) {
      require_aborted(finish(own), why);
      require(sum(set, "x", values[0]) == RUNJOB_INVALID_ARGUMENT, "a removed set");
    } else {
      require_aborted(sum(set, "x", values[0]), why);
      check(runjob_process_set_remove(set));
    }
    require_sum(0, "job", kAll, rank);
    return outcome_of(runjob_shutdown());
  }));
}

TEST_CASE("random operations and endings of overlapping sets neither hang nor mix", "[runtime][multiproc]") {
  const auto options = with_sets(GENERATE(kOneHost, kTwoHosts), GENERATE("1", "0"));
  const unsigned seed = GENERATE(1u, 2u, 3u);
  MemberBoard board;
  INFO("seed " << seed);
  check_all_ok(run_ranks(options, [&](int rank) {
    check(runjob_init());
    const std::vector<Ranks> kinds{kAll, kAll, {0, 1}, {0, 1}, {1, 2, 3}, {3, 2}};
    std::mt19937 common(seed), own(seed * 100 + static_cast<unsigned>(rank));
    for (int round = 0; round < 8; ++round) {
      std::vector<std::int32_t> sets;
      std::vector<std::size_t> kind_of;
      for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
        const int channel = round * static_cast<int>(kinds.size()) + static_cast<int>(kind);
        if (contains(kinds[kind], rank)) sets.push_back(board.add(channel, kinds[kind], rank)), kind_of.push_back(kind);
      }
      std::vector<unsigned> givers, sizes;  // by kind: a bit for each rank that gives the set up; elements
      for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
        givers.push_back(common() % 2 == 0 ? common() % 16 : 0);
        sizes.push_back(common() % 2 == 0 ? 1 : 20000);
      }
      std::vector<std::string> errors(sets.size());
      std::vector<std::thread> of_sets;
      for (std::size_t i = 0; i < sets.size(); ++i) {
        const std::size_t kind = kind_of[i];
        const bool gives_up = (givers[kind] >> rank & 1) != 0;
        const unsigned when = own() % 40, size = sizes[kind];
        of_sets.emplace_back([&, i, kind, gives_up, when, size] {
          try {
            for (unsigned step = 0; step < 40; ++step) {
              std::vector<float> values(size, static_cast<float>(step + kind));
              if (gives_up && step == when) check(runjob_process_set_give_up(sets[i], "at random"));
              const std::int64_t extent = size;
              runjob_handle handle = 0;
              const std::string name = "x" + std::to_string(step % 3);
              runjob_code code = runjob_allreduce_async(name.c_str(), values.data(), values.data(), &extent, 1,
                                                        RUNJOB_FLOAT32, RUNJOB_MAX, 1, 1, sets[i], &handle);
              if (code == RUNJOB_OK && gives_up && when % 3 == 0 && step == when + 2)
                check(runjob_give_up(handle, "at random"));
              if (code == RUNJOB_OK) code = finish(handle);
              if (code != RUNJOB_OK) {
                require_aborted(code, "at random");
                return;
              }
              require(values[0] == static_cast<float>(step + kind) && values[size - 1] == values[0], "the maximum");
            }
          } catch (const std::exception& error) {
            errors[i] = error.what();
          }
        });
      }
      for (std::thread& thread : of_sets) thread.join();
      for (const std::string& error : errors) require(error.empty(), error);
      check(barrier("round"));
      require_sum(0, "job", kAll, rank);
      for (const std::int32_t set : sets) check(runjob_process_set_remove(set));
    }
    return outcome_of(runjob_shutdown());
  }));
}
