#pragma once

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/negotiation/stall_inspector.hpp"
#include "runtime/negotiation/submission.hpp"
#include "runtime/operations/handle_table.hpp"

namespace runjob::runtime {

/// The operations in flight on a rank, by name.
/// Threads  one at a time. Pointers to entries stay valid until they are taken.
class InFlight {
 public:
  struct Entry {
    Submission submission;
    std::shared_ptr<Completion> completion;
    bool running = false;      ///< the backend may touch the buffers
    bool is_lent = false;      ///< a round may read the input
    std::uint64_t serial = 0;  ///< differs for each operation
    Completion::Result result;

    bool is_on_device() const { return submission.signature.memory == MemoryKind::kDevice; }
  };

  using Entries = std::unordered_map<std::string, Entry>;
  /// An operation that was removed, with its name; empty for none.
  using Taken = Entries::node_type;

  bool empty() const { return entries_.empty(); }
  /// True while there is an operation on tensors of a device.
  bool has_device_operation() const;
  bool contains(const std::string& name) const { return !entries_.empty() && entries_.count(name) != 0; }
  std::shared_ptr<Completion> insert(Submission&& submission);
  /// Null when no operation has this name.
  Entry* find(const std::string& name);

  /// Counts the operation as running, once.
  void set_running(Entry& entry);
  void set_done(Entry& entry);
  std::size_t running() const { return running_; }

  /// Removes the operation, which is not running any more.
  Taken take(const std::string& name);
  /// Removes all operations that are not running, and whose input is not lent.
  std::vector<Taken> take_waiting();
  std::vector<Taken> take_all();
  /// As take_waiting(), of one process set.
  std::vector<Taken> take_waiting_of(int process_set);

  std::vector<std::shared_ptr<Completion>> completions() const;
  std::vector<std::shared_ptr<Completion>> completions_of(int process_set) const;
  /// The operation that `completion` is the outcome of; null when it is not in flight.
  const Submission* find(const Completion& completion) const;
  /// True while an operation of another process set is running.
  bool runs_other_than(int process_set) const;

  /// The operations that are not running, without the ranks that they wait for.
  std::vector<WaitingOperation> waiting() const;

 private:
  std::vector<Taken> take_if(const std::function<bool(const Entry&)>& is_wanted);

  Entries entries_;
  std::size_t running_ = 0;
  std::uint64_t count_ = 0;
};

}  // namespace runjob::runtime
