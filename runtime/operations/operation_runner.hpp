#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "runtime/negotiation/control_message.hpp"
#include "runtime/negotiation/submission.hpp"
#include "runtime/operations/fused_allreduce.hpp"
#include "runtime/operations/fusion_plan.hpp"
#include "runtime/operations/handle_table.hpp"
#include "runtime/operations/run_operation.hpp"

namespace runjob::runtime {

/// An operation that all ranks have agreed to run. The pointers are lent until it is done.
struct AgreedOperation {
  Decision* decision = nullptr;
  /// A rank that has joined has no buffers while the decision is for_joined: it gets zeros.
  Submission* submission = nullptr;
  Completion::Result* result = nullptr;
  Status status = {};  ///< the outcome, once it is done
  // For the runner alone.
  std::size_t left = 0;  ///< the number of its items that are not done
  bool is_begun = false;
};

/// The user's settings of fusion; the same on all ranks.
struct FusionSettings {
  std::size_t threshold_bytes = 128u << 20;  ///< the most bytes that are run as one; 0 for no fusion
  bool mixes_groups = true;                  ///< tensors of a grouped operation may be fused with others
};

/// Runs the operations that all ranks have agreed on: allreduces fused where that pays, everything else one by one.
/// Fused tensors in host memory go through a buffer; those of a device are launched together, where they lie.
/// Order    follows from the operations alone, so that it is the same on all ranks.
/// Owner    the buffer. The timeline is lent, and outlives it.
/// Threads  one, on which `on_done` is called too.
/// Errors   none is thrown. A failure is the status of each operation that it concerns; the others are still run.
class OperationRunner {
 public:
  /// Called with the operations that are done, each once, soon after it is.
  using OnDone = std::function<void(std::span<AgreedOperation* const>)>;

  /// For rank `rank` of `size`.
  OperationRunner(DataPath path, EngineTimeline& timeline, int rank, int size, const FusionSettings& settings,
                  const FusionAdvice& advice);

  /// Blocks until all are done. An operation on a device is done here when it is queued there.
  void run(std::span<AgreedOperation> operations, const OnDone& on_done);

 private:
  void find_items(std::span<AgreedOperation> operations);
  void run_batch(std::span<AgreedOperation> operations, std::span<const std::size_t> batch, const OnDone& on_done);
  Status run(std::span<AgreedOperation> operations, std::span<const std::size_t> batch);
  Status run_alone(const DataPath& path, AgreedOperation& operation, std::size_t tensor);
  Status run_on_device(std::span<AgreedOperation> operations, std::span<const std::size_t> batch);
  void begin(AgreedOperation& operation);

  const DataPath path_;
  EngineTimeline& timeline_;
  const int rank_, size_;
  const FusionLimits limits_;
  const bool mixes_groups_;
  const std::size_t most_compressed_;  ///< bytes that go through the buffer at once
  FusionBuffer buffer_;
  std::vector<FusionItem> items_;       ///< of the operations that run
  std::vector<AgreedOperation*> done_;  ///< with the last batch
};

}  // namespace runjob::runtime
