#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/collectives/operation.hpp"
#include "runtime/negotiation/response_cache.hpp"

namespace runjob::runtime {

/// The unnamed operations that some ranks have announced and not all, for each process set. A rank announces them in
/// the order in which it submits them, so that the announcement itself needs no number: what a rank announces next has
/// the first place that the rank has not announced.
///
/// Numbers  the ranks count alike, except that a rank does not count the operations that were decided without it
///          because it had joined. Place::name has the number that all ranks agree on; the names that decided() and
///          next() return are those in flight on this rank.
/// Threads  one at a time.
class UnnamedOrder {
 public:
  using Id = ResponseCache::Id;

  struct Place {
    int process_set = 0;
    std::string name;  ///< unnamed_operation()
    std::string key;   ///< of the rank that announced it first, for the response cache
    /// All ranks that have announced it did so with this id; nullopt: their signatures are compared.
    std::optional<Id> id = {};
    std::vector<bool> ready = {};  ///< by rank
    std::size_t ready_count = 0;
    bool begins = false;  ///< see Request
  };

  /// For rank `rank` of `size`.
  UnnamedOrder(int rank, std::size_t size) : rank_(static_cast<std::size_t>(rank)), size_(size), outstanding_(size) {}

  /// The place of what a rank announces next in a process set. Lent until decided().
  Place& next_place(int process_set, int rank, const std::string& key);
  /// The rank announces the place: with this id, as all others so far, or nullopt.
  void announce(Place& place, int rank, std::optional<Id> id);
  /// From now on the signatures of the ranks are compared.
  void drop_id(Place& place);
  /// The places that were announced with this id, or without one with any, the oldest first. Lent until decided().
  std::vector<Place*> with_id(std::optional<Id> id);
  /// The first operation of a process set is decided. Returns its name on this rank.
  std::string decided(int process_set);
  /// The open place with this name, which is the first one of its process set; null for none.
  const Place* first(const std::string& name) const;

  /// All ranks announce the next operation of a process set in which none is open: it is decided.
  void agree(int process_set);
  bool has_open(int process_set) const;
  /// The name on this rank of the operation that was decided last.
  std::string last(int process_set) const;
  /// The name of the operation that this rank announces as the next but `skip`.
  std::string next(int process_set, std::size_t skip) const;
  /// The place of an operation in flight on this rank; null when no rank has announced it.
  const Place* find(const std::string& name) const;
  /// Forgets a process set.
  void end_set(int process_set);
  /// The number of open places that a rank has announced with an id.
  std::size_t outstanding(int rank) const { return outstanding_[static_cast<std::size_t>(rank)]; }

 private:
  struct OfSet {
    std::uint64_t decided = 0, decided_here = 0;  ///< operations: by all ranks, and with this one
    std::deque<Place> open;
    std::vector<std::size_t> announced;  ///< by rank: of the open ones
    std::string last;
  };

  const std::size_t rank_, size_;
  std::map<int, OfSet> sets_;
  std::vector<std::size_t> outstanding_;  ///< by rank
};

}  // namespace runjob::runtime
