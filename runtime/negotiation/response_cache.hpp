#pragma once

#include <array>
#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "runtime/negotiation/combine_messages.hpp"
#include "runtime/negotiation/control_message.hpp"
#include "runtime/negotiation/prepared_operation.hpp"

namespace runjob::runtime {

/// The operations that all ranks have agreed on, each with an id that stands for it from then on, and the ranks that
/// have announced the id again. The same on all ranks, as long as all make the same calls in the same order.
///
/// Age      an operation that runs becomes the youngest. The oldest one that no rank has announced is forgotten when
///          there would be more than `capacity`.
/// Owner    references that it returns are lent until remember() or forget() is called.
/// Threads  one at a time.
/// Source   Horovod's response cache.
class ResponseCache {
 public:
  using Id = std::uint32_t;

  /// For rank `rank` of `size`.
  ResponseCache(int rank, std::size_t size, std::size_t capacity);

  /// The id of an operation by its name alone.
  std::optional<Id> find(std::string_view name) const;
  /// The id of this rank's operation, when the cache has it with the same signature.
  std::optional<Id> find(std::string_view name, const Signature& signature) const;
  std::optional<Id> find(std::string_view name, const SignatureView& signature) const;
  bool contains(Id id) const { return id < slots_.size() && !slots_[id].decision.name.empty(); }

  const std::string& name(Id id) const { return slots_[id].decision.name; }
  const Decision& decision(Id id) const { return slots_[id].decision; }
  const Signature& signature_of(Id id, int rank) const {
    const std::vector<Signature>& signatures = slots_[id].signatures;
    return signatures[signatures.size() == 1 ? 0 : static_cast<std::size_t>(rank)];
  }
  /// The call that runs it, without buffers. Not of a grouped operation.
  PreparedOperation& prepared(Id id) { return *slots_[id].prepared; }
  /// The part of this rank's input that goes in its message.
  const OwnMessage& own_message(Id id) const { return slots_[id].own; }
  /// Bytes of the largest input that any rank has for it.
  std::size_t largest_input(Id id) const { return slots_[id].largest_input; }
  /// Bytes to be reduced, equal on all ranks.
  std::size_t reduced_bytes(Id id) const { return slots_[id].reduced_bytes; }
  /// True for an allreduce whose input may be in the messages: that of every rank has largest_input() bytes.
  bool is_plain_allreduce(Id id) const {
    const Slot& slot = slots_[id];
    return slot.prepared && slot.prepared->call.kind == Kind::kAllreduce && slot.largest_input != SIZE_MAX;
  }
  /// A hash of the decision and of the properties that the ranks have in common: equal on all ranks.
  std::uint64_t hash_of(Id id) const;

  /// Adds an operation that all ranks agreed on, by their `signatures`, unless there is no room for it. Returns the id
  /// of the operation that is forgotten for it.
  std::optional<Id> remember(const Decision& decision, std::vector<Signature> signatures);
  void forget(Id id);
  /// The operation runs: it becomes the youngest.
  void touch(Id id) {
    if (slots_[id].age != ages_.begin()) ages_.splice(ages_.begin(), ages_, slots_[id].age);
  }

  /// A rank announces an id. When all ranks have, returns whether any of them announced that it begins something, and
  /// the announcements do not count any more; nullopt before.
  /// Errors  Error(kProtocol) when the rank has announced it already.
  std::optional<bool> announce(Id id, int rank, bool begins);
  bool is_announced(Id id) const { return slots_[id].announced_count != 0 || slots_[id].open_count != 0; }
  /// Unnamed operations: the number of operations that some ranks have announced with this id grows by `change`. Their
  /// announcements are counted elsewhere, since one id may be in flight several times.
  void count_open(Id id, int change) { slots_[id].open_count += change; }
  /// The announcements of an id do not count any more: the ranks that have made them.
  std::vector<int> withdraw(Id id);
  /// The ranks that have not announced it.
  std::vector<int> missing(Id id) const;
  /// The ids that some ranks have announced, the youngest first.
  std::vector<Id> announced() const;
  /// The ids of the operations of a process set.
  std::vector<Id> ids_of(int process_set) const;
  /// The number of ids that a rank has announced and others have not.
  int outstanding(int rank) const { return outstanding_[static_cast<std::size_t>(rank)]; }

 private:
  struct Slot {
    Decision decision;                  ///< its name is empty while the slot is free
    std::vector<Signature> signatures;  ///< by rank; one when all have the same
    std::size_t largest_input = 0, reduced_bytes = 0;
    OwnMessage own;
    std::optional<PreparedOperation> prepared;
    std::vector<bool> announced;  ///< by rank
    std::size_t announced_count = 0;
    int open_count = 0;   ///< see count_open()
    bool begins = false;  ///< of these ranks, one has announced that it begins something
    std::list<Id>::iterator age;
  };
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };

  Id take_free_slot();
  void clear_announcements(Slot& slot);

  const int rank_;
  const std::size_t size_, capacity_;
  std::unordered_map<std::string, Id, Hash, std::equal_to<>> ids_;
  /// Ids of names that were found, each at the index that hash_place() gives its name: to look here first costs less.
  mutable std::array<Id, 64> looked_up_{};
  std::vector<Slot> slots_;  ///< by id
  std::vector<Id> free_;
  std::list<Id> ages_;            ///< the youngest first
  std::vector<int> outstanding_;  ///< by rank
};

}  // namespace runjob::runtime
