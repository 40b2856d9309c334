#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace runjob::runtime {

/// Recognises a training step in the sequence of operations that all ranks agree on. A cycle ends before one of its
/// operations is agreed on again. It also ends, and is a repeated one, with the last operation that the cycle before it
/// had, when both have the same operations in any order.
/// Pure     from the operations that all ranks agree on, so that all ranks recognise the same cycles.
/// Threads  one.
class RepeatingCycle {
 public:
  /// An operation, by its id in the response cache.
  struct Step {
    std::uint32_t id = 0;
    std::size_t bytes = 0;  ///< to be reduced
    /// True if some rank saw the end of another operation between its submissions of the step before and of this one.
    /// This one may depend on that result, so a bucket ends before it.
    bool begins = false;
  };
  enum class Event {
    kNone,
    kEnded,     ///< a cycle is over; `step` is the first one of the next
    kRepeated,  ///< a cycle is over with `step`, and has the operations of the one before
  };

  Event agreed(const Step& step);
  /// True when the last two cycles were this operation alone: then agreed() does nothing.
  bool is_only(std::uint32_t id) const { return only_ == id; }
  /// Forgets all steps so far: an operation without an id was agreed on, or ids have changed their meaning.
  void interrupted();
  /// The steps of the cycle that ended last, in its order. A step begins something when it did so in either of the last
  /// two cycles.
  const std::vector<Step>& steps() const { return ended_; }

 private:
  struct Seen {
    std::uint64_t cycle = 0;  ///< the last cycle that the operation was in
    bool begins = false;      ///< it began something there
  };

  void end();

  std::vector<Step> current_, ended_;
  std::vector<Seen> seen_;  ///< by id
  std::uint64_t cycle_ = 2;
  std::size_t common_ = 0;             ///< steps of the current cycle that were in the one before
  std::optional<std::uint32_t> only_;  ///< the only operation of the last two cycles
};

}  // namespace runjob::runtime
