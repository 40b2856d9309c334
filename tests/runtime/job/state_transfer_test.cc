#include "runtime/job/state_transfer.hpp"

#include <atomic>
#include <csignal>
#include <fstream>
#include <sys/mman.h>
#include <thread>

#include "tests/catch.hpp"
#include "tests/runtime/member_ranks.hpp"
#include "tests/runtime/set_calls.hpp"

/// Transfers at work: ranks are processes that use them through the C interface, in jobs that allow no process sets.

using namespace runjob::runtime;

namespace {

using Bytes = std::vector<std::uint8_t>;

const std::vector<std::string> kOneHost(4, "alpha"), kTwoHosts{"alpha", "alpha", "beta", "beta"};

RankOptions on(const std::vector<std::string>& hosts) {
  RankOptions options;
  options.hosts = hosts;
  return options;
}

runjob_code transfer(std::vector<Bytes>& blocks, bool lacks) {
  std::vector<void*> addresses;
  std::vector<std::int64_t> sizes;
  for (Bytes& block : blocks) {
    addresses.push_back(block.data());
    sizes.push_back(static_cast<std::int64_t>(block.size()));
  }
  return runjob_elastic_transfer(addresses.data(), sizes.data(), static_cast<std::int32_t>(blocks.size()), lacks);
}

/// On a rank that has the state.
runjob_code wait_for_transfer(const std::vector<std::int64_t>& sizes) {
  return runjob_elastic_transfer(nullptr, sizes.data(), static_cast<std::int32_t>(sizes.size()), 0);
}

void check_job(int size) {
  float value = 1;
  check(sum(0, "all", value));
  require(value == static_cast<float>(size), "the job goes on");
}

/// The most memory that this process has used since reset_peak(), in bytes.
std::size_t peak() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    std::size_t kilobytes = 0;
    if (word == "VmHWM:" && status >> kilobytes) return kilobytes << 10;
  }
  throw std::runtime_error("/proc/self/status has no VmHWM");
}

void reset_peak() {
  std::ofstream("/proc/self/clear_refs") << 5;
}

/// A flag that forked ranks share.
std::atomic<bool>* shared_flag() {
  void* memory = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(memory != MAP_FAILED);
  return new (memory) std::atomic<bool>(false);
}

}  // namespace

TEST_CASE("ranks that lack the state get it, and the others keep theirs", "[runtime][multiproc]") {
  const auto& hosts = GENERATE(kOneHost, kTwoHosts);
  const auto lacking = GENERATE(Ranks{}, Ranks{1}, Ranks{3}, Ranks{1, 3}, Ranks{2, 3}, Ranks{1, 2, 3});
  const std::size_t bytes = GENERATE(5, 300'000, 1'100'000);
  const std::vector<Outcome> outcomes = run_ranks(on(hosts), [&](int rank) {
    check(runjob_init());
    std::vector<Bytes> nothing(2);
    check(transfer(nothing, rank == 1));
    const bool lacks = std::find(lacking.begin(), lacking.end(), rank) != lacking.end();
    for (int round = 0; round < 2; ++round) {
      std::vector<Bytes> blocks{Bytes(bytes, static_cast<std::uint8_t>(rank + 1)), Bytes(),
                                Bytes(7, static_cast<std::uint8_t>(rank + 11))};
      check(transfer(blocks, lacks));
      const int from = lacks ? 0 : rank;
      require(blocks[0] == Bytes(bytes, static_cast<std::uint8_t>(from + 1)), "the first block");
      require(blocks[2] == Bytes(7, static_cast<std::uint8_t>(from + 11)), "the last block");
      require(all_sets() == Ranks{0}, "no process set is left");
    }
    check_job(4);
    return outcome_of(runjob_shutdown());
  });
  check_all_ok(outcomes);
}

TEST_CASE("a rank that has the state needs no memory for the transfer", "[runtime][multiproc]") {
  constexpr std::size_t kBytes = std::size_t{160} << 20, kPiece = std::size_t{64} << 20;
  const auto& hosts = GENERATE(kOneHost, kTwoHosts);
  const std::vector<Outcome> outcomes = run_ranks(on(hosts), [&](int rank) {
    check(runjob_init());
    check_job(4);
    reset_peak();
    const std::size_t before = peak();
    if (rank == 1 || rank == 3) {
      check(wait_for_transfer({kBytes}));
      require(peak() < before + kPiece / 4, "memory: " + std::to_string(peak() - before));
    } else {
      std::vector<Bytes> blocks{Bytes(kBytes, static_cast<std::uint8_t>(rank + 1))};
      check(transfer(blocks, rank == 2));
      require(blocks[0] == Bytes(kBytes, 1), "the state of rank 0");
      require(peak() >= before + kBytes, "what is measured here is memory");
    }
    check_job(4);
    return outcome_of(runjob_shutdown());
  });
  check_all_ok(outcomes);
}

TEST_CASE("a transfer lets a program have sets of the same ranks", "[runtime][multiproc]") {
  const std::vector<Outcome> outcomes = run_ranks(with_sets(kTwoHosts), [](int rank) {
    check(runjob_init());
    const std::int32_t same = add_set({0, 2}), other = add_set({1, 2});
    std::vector<Bytes> blocks{Bytes(2'000'000, static_cast<std::uint8_t>(rank))};
    check(transfer(blocks, rank == 2));
    require(blocks[0] == Bytes(2'000'000, static_cast<std::uint8_t>(rank == 2 ? 0 : rank)), "the state");
    const std::int32_t later = add_set({2, 3});
    require(all_sets() == Ranks{0, same, other, later} && later == 3, "the sets");
    float value = 1;
    if (rank == 2 || rank == 3) check(sum(later, "x", value));
    if (rank == 0 || rank == 2) check(sum(same, "x", value));
    check_job(4);
    return outcome_of(runjob_shutdown());
  });
  check_all_ok(outcomes);
}

TEST_CASE("states of other sizes are an error on all ranks that names one", "[runtime][multiproc]") {
  const bool is_other_number = GENERATE(false, true);
  const std::vector<Outcome> outcomes = run_ranks(on(kOneHost), [&](int rank) {
    check(runjob_init());
    std::vector<Bytes> blocks{Bytes(rank == 2 && !is_other_number ? 8 : 9)};
    if (rank == 2 && is_other_number) blocks.emplace_back();
    const Outcome outcome = outcome_of(transfer(blocks, rank == 1));
    require(outcome.code == RUNJOB_MISMATCH, std::to_string(outcome.code));
    check_job(4);
    check(runjob_shutdown());
    return outcome;
  });
  for (const Outcome& outcome : outcomes) {
    INFO(outcome.message);
    CHECK_THAT(outcome.message,
               ContainsSubstring("rank 2 on alpha has a state of another size than rank 0 on alpha; make the same"));
  }
}

TEST_CASE("blocks without memory or sizes are refused", "[runtime][multiproc]") {
  const std::vector<Outcome> outcomes = run_ranks(on_one_host(1), [](int) {
    check(runjob_init());
    const auto refused = [](runjob_code code, const std::string& text) {
      require(code == RUNJOB_INVALID_ARGUMENT, "the code is " + std::to_string(code));
      require(std::string(runjob_error_message()).find(text) != std::string::npos, runjob_error_message());
    };
    void* const nothing = nullptr;
    std::int64_t bytes = 4;
    refused(runjob_elastic_transfer(nullptr, &bytes, 1, 0), "a state of 1 blocks has no addresses or no sizes");
    refused(runjob_elastic_transfer(&nothing, nullptr, 1, 0), "a state of 1 blocks has no addresses or no sizes");
    refused(runjob_elastic_transfer(&nothing, &bytes, -1, 0), "a state of -1 blocks");
    refused(runjob_elastic_transfer(&nothing, &bytes, 1, 0), "block 0 of a state has 4 bytes and no memory");
    bytes = -1;
    refused(runjob_elastic_transfer(&nothing, &bytes, 1, 0), "block 0 of a state has -1 bytes and no memory");
    check(runjob_elastic_transfer(nullptr, nullptr, 0, 0));
    return outcome_of(runjob_shutdown());
  });
  INFO(outcomes[0].message);
  CHECK(outcomes[0].ok());
}

namespace {

/// Looks at a byte of the state while the runtime may write it: a race of this test alone, not of the runtime.
__attribute__((no_sanitize("thread"))) bool is_of_rank_0(const volatile std::uint8_t* byte) {
  return *byte == 1;
}

}  // namespace

TEST_CASE("the loss of a rank while the state is sent is an error on all others", "[runtime][multiproc]") {
  constexpr std::size_t kBytes = std::size_t{200} << 20;
  const auto& hosts = GENERATE(kOneHost, kTwoHosts);
  const int victim = GENERATE(0, 1, 3);  // the sender, a rank that has the state, one that lacks it
  std::atomic<bool>* const has_begun = shared_flag();
  has_begun->store(false);
  const std::vector<Outcome> outcomes = run_ranks(on(hosts), [&](int rank) {
    check(runjob_init());
    std::vector<Bytes> blocks{Bytes(rank == 1 ? 0 : kBytes, static_cast<std::uint8_t>(rank + 1))};
    std::thread([first = blocks[0].data(), rank, victim, has_begun] {
      while (rank == 3 ? !is_of_rank_0(first) : !has_begun->load()) std::this_thread::yield();
      has_begun->store(true);
      if (rank == victim) ::raise(SIGKILL);
    }).detach();
    const runjob_code code =
        rank == 1 ? wait_for_transfer({static_cast<std::int64_t>(kBytes)}) : transfer(blocks, rank >= 2);
    const Outcome outcome = outcome_of(code);
    float value = 1;
    require(sum(0, "all", value) != RUNJOB_OK, "the job has ended");
    ::_exit(code == RUNJOB_PEER_LOST ? 0 : 1);
    return outcome;
  });
  for (int rank = 0; rank < 4; ++rank) {
    INFO("rank " << rank << ", victim " << victim << ": " << outcomes[static_cast<std::size_t>(rank)].message);
    const int status = outcomes[static_cast<std::size_t>(rank)].wait_status;
    CHECK(status == (rank == victim ? SIGKILL : 0));
  }
}
