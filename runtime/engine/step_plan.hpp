#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_set>
#include <vector>

#include "runtime/engine/repeating_cycle.hpp"

namespace runjob::runtime {

/// What a step that repeats is made of: buckets, each a set of operations that the ranks submit together and can say with one number.
/// The same on all ranks at all times. A bucket that is not said at once by all ranks in kMostFailures cycles in a row is given up.
/// Source  the buckets of PyTorch's DistributedDataParallel, which are fixed after the first step.
class StepPlan {
 public:
  using Id = std::uint32_t;  ///< an operation's number in the response cache
  using Step = RepeatingCycle::Step;
  /// Of what the ranks must have in common to mean the same by an operation's number.
  using HashOf = std::function<std::uint64_t(Id)>;

  static constexpr int kMostFailures = 3, kEnoughCycles = 4;
  static constexpr std::uint32_t kHashMask = (std::uint32_t{1} << 29) - 1;

  struct Bucket {
    std::vector<Id> ids;
    std::uint32_t hash = 0;   ///< says it, and guards it: ranks that mean something else by it do not know it
    bool was_agreed = false;  ///< by all ranks at once, in this cycle
    int failures = 0;         ///< cycles in a row without that
  };

  /// None: without buckets, of no cycle.
  StepPlan() = default;
  /// Of a cycle's steps, in their order. A bucket ends before a step that begins something, and when it has `bucket_bytes`.
  StepPlan(const std::vector<Step>& steps, std::size_t bucket_bytes, const HashOf& hash_of);

  /// Whether the steps are those that it is made of, in any order.
  bool is_of(const std::vector<Step>& steps) const;
  const std::vector<Bucket>& buckets() const { return buckets_; }
  /// The bucket that an operation is in.
  std::optional<std::size_t> bucket_of(Id id) const;
  /// Whether it is part of the cycle, in a bucket or not.
  bool contains(Id id) const { return ids_.count(id) != 0; }
  std::optional<std::size_t> find(std::uint32_t hash) const;

  /// All ranks have said a bucket at once.
  void agreed(std::size_t bucket) { buckets_[bucket].was_agreed = true; }
  /// True when buckets were given up: then all have other indices.
  bool end_cycle();
  /// Since the beginning.
  bool has_given_up() const { return has_given_up_; }
  /// Whether it was worth its while: all ranks have followed it often enough.
  bool has_paid() const { return followed_ >= kEnoughCycles; }

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  void index();

  std::vector<Bucket> buckets_;
  std::vector<std::uint32_t> bucket_of_;  ///< by id; kNone
  std::unordered_set<Id> ids_;
  bool has_given_up_ = false;
  int followed_ = 0;  ///< cycles
};

}  // namespace runjob::runtime
