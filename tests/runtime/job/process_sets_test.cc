#include "runtime/job/process_sets.hpp"

#include <algorithm>
#include <csignal>
#include <fstream>
#include <numeric>
#include <thread>

#include "tests/catch.hpp"
#include "tests/runtime/set_calls.hpp"

/// Process sets at work: ranks are processes that use them through the C interface.

using namespace runjob::runtime;

namespace {

const std::vector<std::string> kOneHost(4, "alpha"), kTwoHosts{"alpha", "alpha", "beta", "beta"};

bool contains(const Ranks& ranks, int rank) {
  return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
}

/// Of memory that ranks share.
int writable_mappings() {
  std::ifstream maps("/proc/self/maps");
  int count = 0;
  for (std::string line; std::getline(maps, line);)
    count += line.find(" rw-s ") != line.npos && line.find("/memfd:runjob") != line.npos;
  return count;
}

/// Sums ranks + `offset` over the set, several times.
void sum_ranks(std::int32_t set, const Ranks& ranks, int rank, float offset) {
  float expected = 0;
  for (const int each : ranks) expected += static_cast<float>(each) + offset;
  for (int round = 0; round < 50; ++round) {
    float value = static_cast<float>(rank) + offset;
    check(sum(set, "same name", value));
    require(value == expected, "a sum of process set " + std::to_string(set));
  }
}

runjob_handle gathered(const char* name, const std::vector<float>& in, std::int32_t set) {
  const auto extent = static_cast<std::int64_t>(in.size());
  runjob_handle handle = 0;
  check(runjob_allgather_async(name, in.data(), nullptr, 0, &extent, 1, RUNJOB_FLOAT32, set, &handle));
  return handle;
}

/// Each kind of operation once, of `rows` numbers for each member; the values say who gave them.
void run_every_kind(std::int32_t set, const Ranks& ranks, int rank, std::size_t rows) {
  const auto size = ranks.size();
  const auto index = static_cast<std::size_t>(runjob_process_set_rank(set));
  const auto of = [](int from, std::size_t i) { return static_cast<float>(from * 10) + static_cast<float>(i % 7); };
  std::vector<float> in(rows * size), expected, totals(in.size());
  for (std::size_t i = 0; i < in.size(); ++i) {
    in[i] = of(rank, i);
    for (const int each : ranks) totals[i] += of(each, i);
  }

  std::vector<float> values = in;
  check(finish(start_sum(set, "sum", values)));
  require(values == totals, "allreduce");
  values = in;
  check(finish(start_sum(set, "average", values, RUNJOB_AVERAGE)));
  for (std::size_t i = 0; i < values.size(); ++i)
    require(std::abs(values[i] - totals[i] / static_cast<float>(size)) < 1e-3f, "average");

  values = in;
  const std::int32_t root = ranks.back();
  const auto extent = static_cast<std::int64_t>(values.size());
  runjob_handle handle = 0;
  check(runjob_broadcast_async("broadcast", values.data(), &extent, 1, RUNJOB_FLOAT32, root, set, &handle));
  check(finish(handle));
  for (std::size_t i = 0; i < values.size(); ++i) require(values[i] == of(root, i), "broadcast");

  const std::vector<float> own(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(index + 1));
  for (std::size_t from = 0; from < size; ++from)
    for (std::size_t i = 0; i <= from; ++i) expected.push_back(of(ranks[from], i));
  require(take_output<float>(gathered("allgather", own, set)).first == expected, "allgather");

  check(runjob_alltoall_async("alltoall", in.data(), nullptr, 0, &extent, 1, nullptr, 0, RUNJOB_FLOAT32, set, &handle));
  expected.clear();
  for (const int from : ranks)
    for (std::size_t i = index * rows; i < (index + 1) * rows; ++i) expected.push_back(of(from, i));
  require(take_output<float>(handle).first == expected, "alltoall");

  check(runjob_reducescatter_async("reducescatter", in.data(), nullptr, 0, &extent, 1, RUNJOB_FLOAT32, RUNJOB_SUM, 1, 1,
                                   set, &handle));
  const auto first = totals.begin() + static_cast<std::ptrdiff_t>(index * rows);
  require(take_output<float>(handle).first == std::vector<float>(first, first + static_cast<std::ptrdiff_t>(rows)),
          "reducescatter");

  check(runjob_barrier_async("barrier", set, &handle));
  check(finish(handle));
}

void check_message(const std::vector<Outcome>& outcomes, runjob_code code, const std::string& text) {
  for (const Outcome& outcome : outcomes) {
    INFO(outcome.message);
    CHECK(outcome.code == code);
    CHECK_THAT(outcome.message, ContainsSubstring(text));
  }
}

}  // namespace

TEST_CASE("every kind of operation runs on a process set", "[runtime][multiproc]") {
  const auto options = with_sets(GENERATE(kOneHost, kTwoHosts), GENERATE("1", "0"));
  const auto members = GENERATE(Ranks{0, 1}, Ranks{1, 2, 3}, Ranks{0, 3}, Ranks{2});
  check_all_ok(run_ranks(options, [&](int rank) {
    check(runjob_init());
    const std::int32_t set = add_set(members);
    require(set == 1 && ranks_of(set) == members, "the set's number and ranks");
    for (const std::size_t rows : {1u, 50000u}) {
      if (contains(members, rank)) run_every_kind(set, members, rank, rows);
    }
    check(small_allreduce("all"));
    return outcome_of(runjob_shutdown());
  }));
}

TEST_CASE("overlapping sets need no common order", "[runtime][multiproc]") {
  const auto options = with_sets(GENERATE(kOneHost, kTwoHosts), GENERATE("1", "0"));
  check_all_ok(run_ranks(options, [](int rank) {
    check(runjob_init());
    const std::vector<Ranks> members{{0, 1, 2, 3}, {0, 1}, {2, 3}, {1, 2, 3}, {0, 2}};
    std::vector<std::int32_t> own;
    for (std::size_t i = 1; i < members.size(); ++i) require(add_set(members[i]) == static_cast<int>(i), "number");
    for (std::size_t i = 0; i < members.size(); ++i)
      if (contains(members[i], rank)) own.push_back(static_cast<std::int32_t>(i));
    for (int round = 0; round < 20; ++round) {
      // Each rank goes through its sets in an order of its own, and waits in another one.
      std::rotate(own.begin(), own.begin() + (rank + round) % static_cast<int>(own.size()), own.end());
      std::vector<std::vector<float>> values;
      std::vector<runjob_handle> handles;
      for (std::size_t i = 0; i < own.size(); ++i) values.emplace_back(1000, static_cast<float>(rank));
      for (std::size_t i = 0; i < own.size(); ++i) handles.push_back(start_sum(own[i], "x", values[i]));
      for (std::size_t i = own.size(); i-- > 0;) {
        check(finish(handles[i]));
        const Ranks& of = members[static_cast<std::size_t>(own[i])];
        require(values[i][999] == static_cast<float>(std::accumulate(of.begin(), of.end(), 0)), "sum");
      }
    }
    return outcome_of(runjob_shutdown());
  }));
}

TEST_CASE("threads of one rank block on different sets at the same time", "[runtime][multiproc]") {
  const auto options = with_sets(kOneHost, GENERATE("1", "0"));
  check_all_ok(run_ranks(options, [](int rank) {
    check(runjob_init());
    const std::vector<Ranks> members{{0, 1, 2, 3}, {0, 1}, {1, 2, 3}, {0, 3}};
    for (std::size_t i = 1; i < members.size(); ++i) static_cast<void>(add_set(members[i]));
    std::vector<std::string> errors(members.size());
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < members.size(); ++i) {
      if (!contains(members[i], rank)) continue;
      threads.emplace_back([&, i] {
        try {
          sum_ranks(static_cast<std::int32_t>(i), members[i], rank, static_cast<float>(i));
        } catch (const std::exception& error) {
          errors[i] = error.what();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const std::string& error : errors) require(error.empty(), error);
    return outcome_of(runjob_shutdown());
  }));
}

TEST_CASE("a rank that is in no set need not do anything, and may leave", "[runtime][multiproc]") {
  const auto options = with_sets(kOneHost, GENERATE("1", "0"));
  const int idle = GENERATE(0, 3);
  check_all_ok(run_ranks(options, [&](int rank) {
    check(runjob_init());
    const Ranks members = idle == 0 ? Ranks{1, 2, 3} : Ranks{0, 1, 2};
    const std::int32_t set = add_set(members);
    if (rank == idle) return outcome_of(runjob_shutdown());
    while (barrier("until it has left") == RUNJOB_OK) continue;
    sum_ranks(set, members, rank, 1);
    return outcome_of(runjob_shutdown());
  }));
}

TEST_CASE("disagreements in a set are told by the ranks of the job", "[runtime][multiproc]") {
  const auto options = with_sets(kTwoHosts, GENERATE("1", "0"));
  const auto outcomes = run_ranks(options, [](int rank) {
    check(runjob_init());
    const std::int32_t set = add_set({1, 3});
    if (!contains({1, 3}, rank)) {
      check(barrier("end"));
      check(runjob_shutdown());
      return Outcome{RUNJOB_MISMATCH,
                     "allreduce 'x' of process set 1: the ranks disagree on the shape: [2] on rank 1 (alpha); [4] on "
                     "rank 3 (beta)",
                     0};
    }
    std::vector<float> values(static_cast<std::size_t>(rank) + 1);
    const Outcome outcome = outcome_of(finish(start_sum(set, "x", values)));
    float one = 1;
    check(sum(set, "x", one));
    check(barrier("end"));
    check(runjob_shutdown());
    return outcome;
  });
  check_message(
      outcomes, RUNJOB_MISMATCH,
      "allreduce 'x' of process set 1: the ranks disagree on the shape: [2] on rank 1 (alpha); [4] on rank 3 (beta)");
}

TEST_CASE("a stalled operation of a set names the set, and the missing rank of the job", "[runtime][multiproc]") {
  RankOptions options = with_sets(kOneHost, GENERATE("1", "0"));
  options.environment["RUNJOB_STALL_SHUTDOWN_TIME_SECONDS"] = "0.3";
  const auto outcomes = run_ranks(options, [](int rank) {
    check(runjob_init());
    const std::int32_t set = add_set({1, 3}), others = add_set({0, 2, 3});
    float value = 0;
    if (rank == 1) return outcome_of(sum(set, "never", value));
    runjob_code code = RUNJOB_OK;
    while (code == RUNJOB_OK) code = sum(others, "until the job ends", value);
    return outcome_of(code);
  });
  check_message(outcomes, RUNJOB_TIMEOUT, "allreduce 'never' of process set 1 has waited");
  check_message(outcomes, RUNJOB_TIMEOUT, "for rank 3 on alpha (has submitted nothing)");
}

TEST_CASE("a killed rank ends all sets and the job, and is named everywhere", "[runtime][multiproc]") {
  const auto options = with_sets(GENERATE(kOneHost, kTwoHosts), GENERATE("1", "0"));
  const int victim = GENERATE(0, 1, 3);
  const auto outcomes = run_ranks(options, [&](int rank) {
    check(runjob_init());
    const std::int32_t first = add_set({0, 1, 2}), second = add_set({2, 3});
    float value = 1;
    // Shows that all have come, unless the victim goes between this and the others' end of it.
    if (const runjob_code code = sum(0, "all", value); code != RUNJOB_OK) return outcome_of(code);
    if (rank == victim) std::raise(SIGKILL);
    // Of each rank one operation waits for the victim, or for a rank that does.
    const std::int32_t set = rank == 3 ? second : first;
    const runjob_code code = rank == 2 && victim == 3 ? sum(second, "never", value) : sum(set, "never", value);
    const Outcome outcome = outcome_of(code);
    require(barrier("job") == code, "the job did not end alike");
    return outcome;
  });
  for (int rank = 0; rank < 4; ++rank) {
    if (rank == victim) continue;
    const Outcome& outcome = outcomes[static_cast<std::size_t>(rank)];
    INFO("rank " << rank << ": " << outcome.message);
    CHECK(outcome.code == RUNJOB_PEER_LOST);
    CHECK_THAT(outcome.message, ContainsSubstring("rank " + std::to_string(victim) + " on " +
                                                  options.hosts[static_cast<std::size_t>(victim)] + " is gone"));
  }
}

TEST_CASE("a rank killed while a set is added ends the job", "[runtime][multiproc]") {
  const auto options = with_sets(kOneHost);
  const int victim = GENERATE(0, 3);
  const auto outcomes = run_ranks(options, [&](int rank) {
    check(runjob_init());
    float value = 1;
    if (const runjob_code code = sum(0, "all", value); code != RUNJOB_OK) return outcome_of(code);
    if (rank == victim) std::raise(SIGKILL);
    const Ranks ranks{0, 1, 3};
    std::int32_t id = 0;
    return outcome_of(runjob_process_set_add(ranks.data(), 3, &id));
  });
  for (int rank = 0; rank < 4; ++rank) {
    if (rank == victim) continue;
    INFO(outcomes[static_cast<std::size_t>(rank)].message);
    CHECK(outcomes[static_cast<std::size_t>(rank)].code == RUNJOB_PEER_LOST);
  }
}

TEST_CASE("removal ends what is in flight in the set, and nothing else", "[runtime][multiproc]") {
  const auto options = with_sets(GENERATE(kOneHost, kTwoHosts), GENERATE("1", "0"));
  check_all_ok(run_ranks(options, [](int rank) {
    check(runjob_init());
    const std::int32_t first = add_set({0, 1}), second = add_set({1, 2, 3}), third = add_set({0, 3});
    std::vector<float> waiting(10, 1), other(10, 1);
    runjob_handle pending = 0, goes_on = 0;
    if (rank == 0) pending = start_sum(first, "never", waiting);
    if (rank == 1) goes_on = start_sum(second, "later", other);
    check(runjob_process_set_remove(first));
    if (rank == 0) {
      require(finish(pending) == RUNJOB_ABORTED, "the pending operation's code");
      require(std::string(runjob_error_message()) == "process set 1 was removed", runjob_error_message());
    }
    if (rank > 1) goes_on = start_sum(second, "later", other);
    if (rank > 0) {
      check(finish(goes_on));
      require(other[9] == 3, "the other set's sum");
    }
    float value = 1;
    require(sum(first, "x", value) == RUNJOB_INVALID_ARGUMENT, "a removed set");
    require(all_sets() == Ranks{0, second, third}, "the sets that are left");
    check(runjob_process_set_remove(third));
    require(add_set({1, 3}) == first && add_set({0, 2}) == third && add_set({2, 3}) == 4, "freed numbers come again");
    if (rank == 1 || rank == 3) sum_ranks(first, {1, 3}, rank, 0);
    return outcome_of(runjob_shutdown());
  }));
}

TEST_CASE("one of a set's ranks that calls shutdown() ends the set on the others", "[runtime][multiproc]") {
  const auto options = with_sets(kOneHost, GENERATE("1", "0"));
  check_all_ok(run_ranks(options, [](int rank) {
    check(runjob_init());
    const std::int32_t set = add_set({0, 2, 3});
    if (rank == 1 || rank == 3) return outcome_of(runjob_shutdown());
    float value = 1;
    require(sum(set, "never", value) == RUNJOB_ABORTED, "its code");
    const std::string message = runjob_error_message(),
                      waits = "while rank " + std::to_string(rank) + " on alpha waits";
    require(message.starts_with("rank 3 on alpha called shutdown() " + waits), message);
    return outcome_of(runjob_shutdown());
  }));
}

TEST_CASE("a job that is joined again has no sets but those it is given", "[runtime][multiproc]") {
  const auto options = with_sets(kOneHost);
  check_all_ok(run_ranks(options, [](int rank) {
    for (int round = 0; round < 3; ++round) {
      check(runjob_init());
      require(all_sets() == Ranks{0}, "sets of before");
      require(add_set({0, 1}) == 1 && add_set({1, 2}) == 2, "numbers");
      std::vector<float> values(100000, 1);
      runjob_handle in_flight = 0;
      if (rank == 0) in_flight = start_sum(1, "never", values);
      check(barrier("rank 1 has not left before"));
      check(runjob_shutdown());
      if (rank == 0) require(finish(in_flight) == RUNJOB_ABORTED, "in flight at shutdown");
    }
    const std::int32_t ranks[] = {3, 2, 0, 1}, sizes[] = {2, 2};
    check(runjob_init_with_process_sets(ranks, sizes, 2, 0));
    require(ranks_of(1) == Ranks{2, 3} && ranks_of(2) == Ranks{0, 1}, "static sets");
    if (rank < 2) sum_ranks(2, {0, 1}, rank, 5);
    return outcome_of(runjob_shutdown());
  }));
}

TEST_CASE("symmetric memory is symmetric for a set too", "[runtime][multiproc]") {
  check_all_ok(run_ranks(with_sets(kOneHost), [](int rank) {
    check(runjob_init());
    const std::int32_t set = add_set({0, 2, 3});
    const int before = writable_mappings();
    constexpr std::int64_t kCount = 300000;
    void* memory = nullptr;
    check(runjob_symmetric_alloc(kCount * sizeof(float), &memory));
    auto* values = static_cast<float*>(memory);
    std::fill_n(values, kCount, static_cast<float>(rank));
    for (const std::int32_t each : {set, 0}) {
      runjob_handle handle = 0;
      if (each == set && rank == 1) continue;
      check(runjob_allreduce("x", values, values, &kCount, 1, RUNJOB_FLOAT32, RUNJOB_SUM, 1, 1, each, -1, &handle));
      require(values[0] == values[kCount - 1] && values[0] == (each == set ? 5.0f : 16.0f), "sum");
      const int of_others = each == set ? 2 : 3;
      require(writable_mappings() == before + 1 + of_others, "which ranks' windows are used");
    }
    check(runjob_symmetric_free(memory));
    return outcome_of(runjob_shutdown());
  }));
}

TEST_CASE("ranks that ask for different changes are told who asked for what", "[runtime][multiproc]") {
  check_message(run_ranks(with_sets(kOneHost),
                          [](int rank) {
                            check(runjob_init());
                            const Ranks ranks{0, rank == 2 ? 3 : 1};
                            std::int32_t id = 0;
                            const Outcome outcome = outcome_of(runjob_process_set_add(ranks.data(), 2, &id));
                            require(all_sets() == Ranks{0}, "a set was made");
                            require(add_set({0, 1}) == 1, "the number of the next one");
                            check(runjob_shutdown());
                            return outcome;
                          }),
                RUNJOB_MISMATCH,
                "the ranks ask for different process sets: to add [0, 1] on ranks 0 (alpha), 1 (alpha), 3 (alpha); "
                "to add [0, 3] on rank 2 (alpha)");
  check_message(
      run_ranks(with_sets(kOneHost),
                [](int rank) {
                  const std::int32_t ranks[] = {0, 1}, size = 2;
                  return outcome_of(runjob_init_with_process_sets(ranks, &size, rank == 1 ? 0 : 1, 0));
                }),
      RUNJOB_MISMATCH,
      "the ranks give init() different process sets: [0, 1] on ranks 0 (alpha), 2 (alpha), 3 (alpha); none on "
      "rank 1 (alpha)");
}
