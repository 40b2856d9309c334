#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace runjob::runtime {

/// Recognises a training step in the sequence of operations that all ranks agree on: a cycle is what comes before one of its
/// operations comes again, or the operations of the cycle before it, in any order. Pure, so that all ranks recognise the same.
class RepeatingCycle {
 public:
  /// An operation, by its number in the response cache.
  struct Step {
    std::uint32_t id = 0;
    std::size_t bytes = 0;  ///< to be reduced
    /// Some rank had seen the end of another one since it had submitted the one before: it may have had to.
    bool begins = false;
  };
  enum class Event {
    kNone,
    kEnded,     ///< a cycle is over; `step` is the first one of the next
    kRepeated,  ///< a cycle is over with `step`, and has the operations of the one before
  };

  Event agreed(const Step& step);
  /// Whether the last two cycles were this operation alone: then agreed() does nothing.
  bool is_only(std::uint32_t id) const { return only_ == id; }
  /// Something without a number was agreed on, or nothing that came before counts any more.
  void interrupted();
  /// Of the cycle that ended last, in its order. A step begins something when it did so in either of the last two.
  const std::vector<Step>& steps() const { return ended_; }

 private:
  struct Seen {
    std::uint64_t cycle = 0;  ///< the last one that it was in
    bool begins = false;      ///< there
  };

  void end();

  std::vector<Step> current_, ended_;
  std::vector<Seen> seen_;  ///< by number
  std::uint64_t cycle_ = 2;
  std::size_t common_ = 0;             ///< steps of the current cycle that were in the one before
  std::optional<std::uint32_t> only_;  ///< the only operation of the last two cycles
};

}  // namespace runjob::runtime
