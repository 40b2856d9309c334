#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include "runtime/collectives/operation.hpp"
#include "runtime/negotiation/plans/repeated_step.hpp"

namespace runjob::runtime {

/// Numbers the unnamed operations that a rank submits, for each process set from 1 on.
/// Threads  one at a time.
class UnnamedSubmissions {
 public:
  struct Next {
    std::string name;  ///< unnamed_operation(): unique among the operations in flight
    /// The name under which the response cache knows it, equal for operations that the ranks describe alike, at the
    /// same place of a step. It speeds up the negotiation; what matches is the order.
    std::string key;
  };

  /// `description` is hash_of() it, as the caller has described it.
  Next next(int process_set, std::uint64_t description);
  /// The key that next() would return, if the step of the process set expects this operation now.
  std::optional<std::string> expected_key(int process_set, std::uint64_t description) const;
  /// The number of operations that were numbered in a process set.
  std::uint64_t count(int process_set) const;

  /// A hash of what the ranks must agree on.
  template <class Extents>
  static std::uint64_t hash_of(const BasicSignature<Extents>& signature);

 private:
  struct OfSet {
    std::uint64_t count = 0;
    RepeatedStep step;
  };

  std::unordered_map<int, OfSet> sets_;
};

}  // namespace runjob::runtime
