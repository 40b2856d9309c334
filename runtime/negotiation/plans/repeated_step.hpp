#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace runjob::runtime {

/// Tells the operations of a training step apart that look alike. It recognises the step in the sequence of operations
/// that one rank submits, each given by a hash of its description, and counts the equal ones within the step. Ranks
/// with the same sequence come to the same counts.
///
/// Step     a sequence that has just come twice in a row becomes the step: a longer one if the present one is of a
///          single operation, or has not foretold one of eight operations; another one if nothing of the present one
///          has come since.
/// Extra    an operation that the step does not expect now, and has elsewhere, moves the place in the step there. One
///          that it does not have at all is left out: so steps may differ now and then.
/// Pure     from the sequence.
/// Threads  one at a time.
class RepeatedStep {
 public:
  static constexpr std::size_t kLongest = 256;  ///< operations of a step

  /// The next operation: the number of equal ones before it in its step.
  std::uint32_t next(std::uint64_t operation);
  /// What next() would return, if the step expects this operation now.
  std::optional<std::uint32_t> expected(std::uint64_t operation) const {
    if (step_.empty() || step_[next_].operation != operation) return std::nullopt;
    return step_[next_].count;
  }

 private:
  struct Place {
    std::uint64_t operation;
    std::uint32_t count;  ///< of equal ones before it
  };

  bool may_become(std::size_t length) const;
  bool is_past_twice(std::size_t length) const;
  std::optional<std::size_t> repeated_length() const;
  void become(std::size_t length);

  std::vector<Place> step_;
  std::size_t next_ = 0;               ///< index in `step_` of the operation that is expected
  std::size_t misses_ = 0;             ///< operations that were not the expected one, in a row
  std::size_t seen_ = 0, missed_ = 0;  ///< operations of late, and those of them that were not the expected one
  std::vector<std::uint64_t> past_;    ///< the last operations, at most twice kLongest, the newest last
};

}  // namespace runjob::runtime
