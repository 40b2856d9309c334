#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_set>
#include <vector>

#include "runtime/negotiation/plans/repeating_cycle.hpp"

namespace runjob::runtime {

/// The plan of a step that repeats: buckets, each a set of two or more operations that the ranks submit together and
/// can announce with one hash. A bucket that the ranks do not all announce at once in kMostFailures cycles in a row is
/// given up.
/// Pure     from the operations that all ranks agree on, so that the plan is the same on all ranks at all times.
/// Threads  one.
/// Source   the buckets of PyTorch's DistributedDataParallel, which are fixed after the first step.
class StepPlan {
 public:
  using Id = std::uint32_t;  ///< an operation's id in the response cache
  using Step = RepeatingCycle::Step;
  /// A hash of the properties that the ranks must have in common to mean the same operation by an id.
  using HashOf = std::function<std::uint64_t(Id)>;

  static constexpr int kMostFailures = 3, kEnoughCycles = 4;  ///< see end_cycle() and has_paid()
  static constexpr std::uint32_t kHashMask = (std::uint32_t{1} << 29) - 1;

  struct Bucket {
    std::vector<Id> ids;
    std::uint32_t hash = 0;   ///< announces the bucket; ranks with another plan do not know it
    bool was_agreed = false;  ///< all ranks announced it at once in this cycle
    int failures = 0;         ///< cycles in a row without that
  };

  /// No plan: no cycle, and no buckets.
  StepPlan() = default;
  /// Makes the plan of a cycle's steps, in their order. A bucket ends before a step that begins something, and when it
  /// has `bucket_bytes`.
  StepPlan(const std::vector<Step>& steps, std::size_t bucket_bytes, const HashOf& hash_of);

  /// True when the plan was made of these steps, in any order.
  bool is_of(const std::vector<Step>& steps) const;
  const std::vector<Bucket>& buckets() const { return buckets_; }
  /// The bucket that an operation is in.
  std::optional<std::size_t> bucket_of(Id id) const;
  /// True when the operation is part of the cycle, in a bucket or not.
  bool contains(Id id) const { return ids_.count(id) != 0; }
  /// The bucket that this hash announces.
  std::optional<std::size_t> find(std::uint32_t hash) const;

  /// All ranks have announced a bucket at once.
  void agreed(std::size_t bucket) { buckets_[bucket].was_agreed = true; }
  /// A cycle of the plan has ended: counts the failures of its buckets, and gives up those that have too many. Returns
  /// true when there were such; then the other buckets may have other indices.
  bool end_cycle();
  /// True when a bucket was given up since the plan was made.
  bool has_given_up() const { return has_given_up_; }
  /// True when all ranks have announced all buckets in kEnoughCycles cycles, which pays for making the plan.
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
