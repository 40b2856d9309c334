#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/memory/kept_blocks.hpp"
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
  /// An operation that is not in flight; empty for none. After take(), its key is its name.
  using Taken = Entries::node_type;

  bool empty() const { return entries_.empty(); }
  /// True while there is an operation on tensors of a device.
  bool has_device_operation() const;
  bool contains(const std::string& name) const { return !entries_.empty() && entries_.count(name) != 0; }
  /// An operation to be inserted, in the memory of one that was given back, where there is one.
  Taken make(Submission&& submission);
  std::shared_ptr<Completion> insert(Taken operation);
  std::shared_ptr<Completion> insert(Submission&& submission) { return insert(make(std::move(submission))); }
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
  /// An operation that was taken, and whose completion is finished: its memory is used again.
  void give_back(Taken operation);

  std::vector<std::shared_ptr<Completion>> completions() const;

  /// The operations that are not running, without the ranks that they wait for.
  std::vector<WaitingOperation> waiting() const;

 private:
  Taken take_spare();

  Entries entries_;
  std::vector<Taken> spare_;  ///< given back
  const std::shared_ptr<KeptBlocks> completions_ = std::make_shared<KeptBlocks>();
  std::size_t running_ = 0;
  std::uint64_t count_ = 0;
};

}  // namespace runjob::runtime
