#include "runtime/collectives/shm/tuning/algorithm_tuner.hpp"

#include <algorithm>
#include <vector>

#include "tests/catch.hpp"
#include "tests/runtime/collectives/shm/algorithms.hpp"

using namespace runjob::runtime;
using std::chrono::microseconds;

namespace {

constexpr std::size_t kMegabyte = 1u << 20, kSharedBytes = 2 * kMegabyte;
constexpr int kOfCandidate =
    2 + AlgorithmTuner::kTrials;  // messages of a megabyte for each candidate: two write all of the shared memory
constexpr Algorithms kPipelineOrCma{kPipeline, kStreamedPipeline, kCma};

/// The index of an algorithm among the candidates.
std::size_t order_of(const Algorithm& algorithm) {
  return static_cast<std::size_t>(std::find(kCandidates.begin(), kCandidates.end(), algorithm) - kCandidates.begin());
}

/// By candidate.
using Counts = std::array<int, kCandidates.size()>;
using Times = std::array<microseconds, kCandidates.size()>;

Times taking(int pipeline, int streamed, int cma) {
  Times times{};
  times[order_of(kPipeline)] = microseconds(pipeline);
  times[order_of(kStreamedPipeline)] = microseconds(streamed);
  times[order_of(kCma)] = microseconds(cma);
  return times;
}

Counts counts_of(int pipeline, int streamed, int cma) {
  Counts counts{};
  counts[order_of(kPipeline)] = pipeline;
  counts[order_of(kStreamedPipeline)] = streamed;
  counts[order_of(kCma)] = cma;
  return counts;
}

/// All trials of a series, in their order.
std::vector<Algorithm> try_all(AlgorithmTuner& tuner, Kind kind, std::size_t bytes, Algorithms possible,
                               const Times& times) {
  std::vector<Algorithm> tried;
  while (const auto candidate = tuner.next_trial(kind, bytes, possible)) {
    tried.push_back(*candidate);
    tuner.add(kind, bytes, *candidate, times[order_of(*candidate)]);
  }
  return tried;
}

Counts counted(const std::vector<Algorithm>& tried) {
  Counts counts{};
  for (const Algorithm& algorithm : tried) ++counts[order_of(algorithm)];
  return counts;
}

}  // namespace

TEST_CASE("every candidate is tried until it has written all shared memory and a few times more", "[runtime][unit]") {
  AlgorithmTuner tuner(kSharedBytes);
  const auto tried = try_all(tuner, Kind::kAllreduce, kMegabyte, kPipelineOrCma, taking(3, 2, 1));
  CHECK(counted(tried) == counts_of(kOfCandidate, kOfCandidate, kOfCandidate));
  const auto is_earlier = [](const Algorithm& a, const Algorithm& b) { return order_of(a) < order_of(b); };
  CHECK(std::is_sorted(tried.begin(), tried.end(), is_earlier));
  CHECK(tuner.fastest(Kind::kAllreduce, kMegabyte, kPipelineOrCma) == kCma);
}

TEST_CASE("large messages have fewer trials, and one if it takes much longer", "[runtime][unit]") {
  AlgorithmTuner tuner(kSharedBytes);
  constexpr std::size_t kLarge = AlgorithmTuner::kLargeBytes;
  constexpr int kOften = AlgorithmTuner::kTrialsOfLarge;
  for (const int time : {30, 10}) tuner.add(Kind::kAllreduce, kLarge, kPipeline, microseconds(time));
  const auto tried = try_all(tuner, Kind::kAllreduce, kLarge, kPipelineOrCma, taking(0, 13, 12));
  CHECK(counted(tried) == counts_of(0, 1, kOften));
  CHECK(tuner.fastest(Kind::kAllreduce, kLarge, kPipelineOrCma) == kPipeline);
}

TEST_CASE("a candidate that is not possible is neither tried nor chosen", "[runtime][unit]") {
  AlgorithmTuner tuner(kSharedBytes);
  constexpr Algorithms kWithoutCma{kPipeline, kStreamedPipeline};
  const auto tried = try_all(tuner, Kind::kAllgather, kMegabyte, kWithoutCma, taking(3, 2, 1));
  CHECK(counted(tried) == counts_of(kOfCandidate, kOfCandidate, 0));
  CHECK(tuner.fastest(Kind::kAllgather, kMegabyte, kWithoutCma) == kStreamedPipeline);
  try_all(tuner, Kind::kAllgather, kMegabyte, kPipelineOrCma, taking(3, 2, 1));
  CHECK(tuner.fastest(Kind::kAllgather, kMegabyte, kWithoutCma) == kStreamedPipeline);
}

TEST_CASE("streaming stores into the output are tried with the faster stores into ring cells", "[runtime][unit]") {
  const bool is_streamed = GENERATE(false, true), pays = GENERATE(false, true);
  AlgorithmTuner tuner(kSharedBytes);
  constexpr Algorithms kAll{kOneStep, kStreamedOneStep, kPipeline, kStreamedPipeline, kCma, kStreamedOutput, kStreamed};
  Times all = is_streamed ? taking(4, 3, 9) : taking(3, 4, 9);
  all[order_of(kOneStep)] = all[order_of(kStreamedOneStep)] = microseconds(9);
  const Algorithm pipeline = is_streamed ? kStreamedPipeline : kPipeline;
  const Algorithm with_output = is_streamed ? kStreamed : kStreamedOutput;
  all[order_of(with_output)] = microseconds(pays ? 2 : 5);
  CHECK(try_all(tuner, Kind::kAlltoall, kMegabyte, kAll, all).back() == with_output);
  CHECK(tuner.fastest(Kind::kAlltoall, kMegabyte, kAll) == (pays ? with_output : pipeline));
}

TEST_CASE("kinds and powers of two are measured apart", "[runtime][unit]") {
  AlgorithmTuner tuner(kSharedBytes);
  try_all(tuner, Kind::kBroadcast, kMegabyte, kPipelineOrCma, taking(2, 2, 1));
  try_all(tuner, Kind::kReducescatter, kMegabyte, kPipelineOrCma, taking(1, 2, 2));
  CHECK(tuner.fastest(Kind::kBroadcast, kMegabyte, kPipelineOrCma) == kCma);
  CHECK(tuner.fastest(Kind::kReducescatter, kMegabyte, kPipelineOrCma) == kPipeline);
  CHECK_FALSE(tuner.next_trial(Kind::kBroadcast, 2 * kMegabyte - 1, kPipelineOrCma));
  CHECK(tuner.next_trial(Kind::kBroadcast, 2 * kMegabyte, kPipelineOrCma) == kPipeline);
}

TEST_CASE("the last trials of a candidate count, except for the slowest ones", "[runtime][unit]") {
  AlgorithmTuner tuner(kSharedBytes);
  for (const int time : {1, 1, 900, 5, 5, 5, 5, 800})
    tuner.add(Kind::kAllgather, kMegabyte, kPipeline, microseconds(time));
  for (const int time : {900, 900, 4, 4, 4, 4, 4, 4})
    tuner.add(Kind::kAllgather, kMegabyte, kStreamedPipeline, microseconds(time));
  CHECK(tuner.fastest(Kind::kAllgather, kMegabyte, {kPipeline, kStreamedPipeline}) == kStreamedPipeline);
}

TEST_CASE("a choice holds for few messages at first, later for many, and then all are tried again", "[runtime][unit]") {
  AlgorithmTuner tuner(kSharedBytes);
  CHECK_FALSE(tuner.take_settled(Kind::kAlltoall, kMegabyte));
  try_all(tuner, Kind::kAlltoall, kMegabyte, kPipelineOrCma, taking(2, 1, 2));
  constexpr auto kFirst = AlgorithmTuner::kFirstStretch, kLast = AlgorithmTuner::kLastStretch;
  for (const std::uint64_t times : {kFirst, 4 * kFirst, 16 * kFirst, kLast, kLast}) {
    tuner.settle(Kind::kAlltoall, kMegabyte, kStreamedPipeline);
    const std::uint64_t all = times * kCandidates.size() * static_cast<std::uint64_t>(kOfCandidate);
    for (std::uint64_t i = 0; i < all; ++i)
      REQUIRE(tuner.take_settled(Kind::kAlltoall, kMegabyte) == kStreamedPipeline);
    CHECK_FALSE(tuner.take_settled(Kind::kAlltoall, kMegabyte));
    try_all(tuner, Kind::kAlltoall, kMegabyte, kPipelineOrCma, taking(1, 2, 2));
    CHECK(tuner.fastest(Kind::kAlltoall, kMegabyte, kPipelineOrCma) == kPipeline);
  }
}
